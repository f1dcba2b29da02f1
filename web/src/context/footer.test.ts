import { expect, test } from 'vitest'
import { footerOf } from './footer.ts'

const HOSTILE = '/srv/<img src=x onerror=alert(1)>'

test('the first five files are shown by their last part, the others are counted', () => {
  const files = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => `/srv/docs/${name}.md`)
  const footer = footerOf({ files, ports: ['80'], endpoints: ['http://x'] })

  expect(footer.files.map(({ text }) => text)).toEqual(['a.md', 'b.md', 'c.md', 'd.md', 'e.md'])
  expect(footer.files[0]).toEqual({
    text: 'a.md',
    title: '/srv/docs/a.md',
    href: '/?applet=text-editor&path=%2Fsrv%2Fdocs%2Fa.md',
  })
  expect(footer.more).toEqual(['/srv/docs/f.md', '/srv/docs/g.md'])
  expect(footer.applet).toBeNull()
})

test('an applet is a link with its parameters', () => {
  expect(footerOf({ applet: ['git-diff', 'repo=/a b', 'staged'] }).applet).toEqual({
    text: '[git-diff]',
    title: 'repo=/a b, staged=',
    href: '/?applet=git-diff&repo=%2Fa+b&staged=',
  })
})

test('a file name is text whatever it looks like, and nothing gives nothing', () => {
  expect(footerOf({ files: [HOSTILE] }).files[0]?.text).toBe('<img src=x onerror=alert(1)>')
  expect(footerOf({})).toEqual({ files: [], more: [], applet: null })
})
