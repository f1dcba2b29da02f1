// @vitest-environment jsdom
import { describe, expect, test } from 'vitest'
import { blocks } from './markdown.ts'

const html = (text: string) =>
  blocks(text)
    .map((block) => (block.kind === 'html' ? block.html : `[${block.language}]${block.text}`))
    .join('')

describe('what a model writes', () => {
  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '[x](javascript:alert(1))',
    '<a href="data:text/html,x">x</a>',
    '<div style="position:fixed" onclick="alert(1)" class="shell">x</div>',
    '<iframe src="https://example.org"></iframe>',
    '<form action="/api/logout"><button>x</button></form>',
    '<svg><use href="#x"/></svg>',
  ])('can do nothing: %s', (text) => {
    expect(html(text)).not.toMatch(
      /<script|<img|onerror|onclick|javascript:|data:|style=|class="shell"|<iframe|<form|<button|<svg/i,
    )
  })

  test('loads nothing from elsewhere: a picture is a link', () => {
    expect(html('![a cat](https://example.org/cat.png)')).toContain(
      '<a href="https://example.org/cat.png" target="_blank" rel="noopener noreferrer nofollow">a cat</a>',
    )
  })

  test('has headings that fit below those of the page', () => {
    expect(html('# One\n\n### Three')).toBe('<h3 class="depth-1">One</h3><h3 class="depth-3">Three</h3>')
  })

  test('gives code apart, with its language', () => {
    expect(blocks('a\n\n```Python title=x\nprint()\n```')[1]).toEqual({
      kind: 'code',
      text: 'print()',
      language: 'python',
    })
  })
})

test('only the last block of a text that grows is made anew', () => {
  const before = blocks('One **two**.\n\nThr')
  const after = blocks('One **two**.\n\nThree')

  expect(after[0]).toEqual(before[0])
  expect(after[1]).toEqual({ kind: 'html', html: '<p>Three</p>\n' })
})
