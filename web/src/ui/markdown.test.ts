// @vitest-environment jsdom
import { describe, expect, test } from 'vitest'
import { blocks } from './markdown.ts'

const html = (text: string) =>
  blocks(text)
    .map((block) => (block.kind === 'html' ? block.html : `[${block.language}]${block.text}`))
    .join('')

function shown(text: string): HTMLElement {
  const element = document.createElement('div')
  element.innerHTML = html(text)
  return element
}

const letters = (text: string) => shown(text).textContent.trim()

describe('what a model writes', () => {
  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '[x](javascript:alert(1))',
    '<a href="data:text/html,x">x</a>',
    '<div style="position:fixed" onclick="alert(1)" class="shell" id="app">x</div>',
    '<iframe src="https://example.org"></iframe>',
    '<form action="/api/logout"><button>x</button></form>',
    '<svg><use href="#x"/></svg>',
    '<div><img src=x onerror=alert(1)></div>',
    '<b><!-- --><script>alert(1)</script></b>',
    '\\(<img src=x onerror=alert(1)>\\)',
    '[^<img>]\n\n[^<img>]: <img src=x onerror=alert(1)>',
  ])('can do nothing: %s', (text) => {
    const made = shown(text)

    expect(made.querySelector('script, img, iframe, form, button, svg, style')).toBeNull()
    for (const element of made.querySelectorAll('*')) {
      const names = element.getAttributeNames()
      expect(names.filter((name) => name.startsWith('on') || name === 'style')).toEqual([])
      expect(element.getAttribute('href') ?? '#').not.toMatch(/^(javascript|data):/)
      expect([element.className, element.id]).not.toContain('shell')
      expect(element.id).not.toBe('app')
    }
  })

  test.each([
    ['Use `x` or Array<String> and Map<K, V>.', 'Use x or Array<String> and Map<K, V>.'],
    ['<thinking>\nLet me **see**.\n</thinking>', '<thinking>\nLet me see.\n</thinking>'],
    ['Vec<i> of Box<B> and <A>', 'Vec<i> of Box<B> and <A>'],
    ['a <b> c', 'a <b> c'],
    ['</b> closes nothing', '</b> closes nothing'],
    ['<div>List<String></div>', 'List<String>'],
    ['<!-- a note --> and <?php echo 1 ?>', '<!-- a note --> and <?php echo 1 ?>'],
    ['<script>alert(1)</script>', '<script>alert(1)</script>'],
    ['if a < b and c > d', 'if a < b and c > d'],
    ['[^abc]+ is a class', '[^abc]+ is a class'],
    ['It costs $5 to $10, or $HOME:$PATH, or $5 and 10$.', 'It costs $5 to $10, or $HOME:$PATH, or $5 and 10$.'],
  ])('loses no letter: %s', (text, expected) => {
    expect(letters(text)).toBe(expected)
    expect(shown(text).querySelector('.formula')).toBeNull()
  })

  test('loads nothing from elsewhere: a picture is a link', () => {
    expect(html('![a cat](https://example.org/cat.png)')).toContain(
      '<a href="https://example.org/cat.png" target="_blank" rel="noopener noreferrer nofollow">a cat</a>',
    )
  })

  test('has headings that fit below those of the page', () => {
    expect(html('# One\n\n### Three')).toBe(
      '<h3 class="depth-1" dir="auto">One</h3><h3 class="depth-3" dir="auto">Three</h3>',
    )
  })

  test('gives code apart, with its language', () => {
    expect(blocks('a\n\n```Python title=x\nprint()\n```')[1]).toEqual({
      kind: 'code',
      text: 'print()',
      language: 'python',
    })
  })

  test('counts on from the number that a list begins with', () => {
    expect(shown('3. three\n4. four').querySelector('ol')!.getAttribute('start')).toBe('3')
  })

  test('tells tasks that are done from those that are not', () => {
    const boxes = [...shown('- [x] done\n- [ ] open').querySelectorAll('input')]

    expect(boxes.map((box) => [box.type, box.checked, box.disabled, box.getAttribute('aria-label')])).toEqual([
      ['checkbox', true, true, 'Done'],
      ['checkbox', false, true, 'Not done'],
    ])
  })

  test('runs in the direction of its letters, and a list, a table and a quotation as a whole', () => {
    const made = shown('שלום\n\n- שלום\n- hello\n\n> שלום\n\n| שלום |\n|---|\n| one |')

    const named = [...made.querySelectorAll('[dir=auto]')].map(({ localName }) => localName)
    expect(named).toEqual(['p', 'ul', 'blockquote', 'table'])
  })

  test('keeps what is between the two halves of a tag together', () => {
    const [only, ...more] = blocks('<details><summary>More</summary>\n\nThe **rest**.\n\n</details>')

    expect(more).toEqual([])
    expect(only).toEqual({
      kind: 'html',
      html: '<details><summary dir="auto">More</summary><p dir="auto">The <strong>rest</strong>.</p>\n</details>',
    })
  })
})

describe('footnotes', () => {
  test('are numbered as the text names them, and lead there and back', () => {
    const made = shown('One[^b] and two[^a].\n\n[^a]: The *first* note.\n[^b]: The second.\n[^c]: Not named.')
    const [first, second] = made.querySelectorAll('sup a')

    expect([first!.textContent, first!.getAttribute('href'), first!.id]).toEqual(['1', '#text-note-1', 'text-mark-1'])
    expect(second!.getAttribute('href')).toBe('#text-note-2')
    expect([...made.querySelectorAll('ol.notes > li')].map(({ id, textContent }) => [id, textContent])).toEqual([
      ['text-note-1', 'The second. ↩'],
      ['text-note-2', 'The first note. ↩'],
      ['text-note-3', 'Not named. ↩'],
    ])
    expect(made.querySelector('li em')!.textContent).toBe('first')
    expect(first!.hasAttribute('target')).toBe(false)
  })

  test('of two texts are told apart', () => {
    const made = ['one', 'two'].map((name) =>
      blocks('A[^1].\n\n[^1]: B', name).map((block) => 'html' in block && block.html),
    )

    expect(made[0]!.join('')).toContain('href="#one-note-1"')
    expect(made[1]!.join('')).toContain('href="#two-note-1"')
  })
})

describe('formulas', () => {
  test.each([
    ['The sum \\(a + b\\).', 'formula', '\\(a + b\\)'],
    ['It is $x^2$, not $5.', 'formula', '$x^2$'],
    ['\\[\n\\int_0^1 x\\,dx\n\\]', 'formula-block', '\\[\n\\int_0^1 x\\,dx\n\\]'],
    ['- so $$y_1$$', 'formula-block', '$$y_1$$'],
    ['$$\na < b\n$$\n\nText', 'formula-block', '$$\na < b\n$$'],
  ])('are kept as they are written until they are set: %s', (text, name, written) => {
    const found = shown(text).querySelector('.formula, .formula-block')!

    expect([found.className, found.textContent]).toEqual([name, written])
  })

  test.each(['`$x$` and `\\(y\\)`', '```\n$x$\n```', '\\[1\\] is a source'])(
    'are not in code or quotes: %s',
    (text) => {
      expect(shown(text).querySelector('.formula, .formula-block')).toBeNull()
    },
  )
})

test('only the last block of a text that grows is made again', () => {
  const before = blocks('One **two**.\n\nThr')
  const after = blocks('One **two**.\n\nThree')

  expect(after[0]).toEqual(before[0])
  expect(after[1]).toEqual({ kind: 'html', html: '<p dir="auto">Three</p>\n' })
})
