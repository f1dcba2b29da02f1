import { expect, test } from 'vitest'
import { appletIn } from '../context/footer.ts'
import { parse } from '../routing/route.ts'
import { itemsOf } from './capture.ts'

test('an applet is kept as its slug and its parameters in their order', () => {
  const { applet } = parse('/s/a?applet=git-diff&path=%2Fsrv%2Fa+b&base=main%3D1')
  expect(itemsOf(applet)).toEqual(['git-diff', 'path=/srv/a b', 'base=main=1'])
  expect(appletIn({ applet: itemsOf(applet)! })).toEqual(applet)
})

test('without an applet there is nothing to keep, and the page’s own views are none of the session’s', () => {
  expect(itemsOf(parse('/s/a?path=/x').applet)).toBeNull()
  expect(itemsOf({ slug: 'debug', params: [] })).toBeNull()
})
