/**
 * Markdown as safe HTML, block by block.
 *
 * What models and web pages write is never trusted: it is sanitised, has no styles of its own, and loads nothing from
 * elsewhere (an image becomes a link to it). Nothing of it is lost either: a tag that is not ours to show, such as
 * `<thinking>`, stays as text. A text that grows is cheap: only its last block is made again.
 */

import DOMPurify from 'dompurify'
import { Marked, type Token, type Tokens } from 'marked'
import { footnote, footnoteMark, numbered, type Notes } from './footnotes.ts'
import { blockFormula, inlineFormula } from './formulas.ts'
import { closedAt, escaped, isTag, legible } from './tags.ts'

export type Block = { kind: 'html'; html: string } | { kind: 'code'; text: string; language: string }

const CACHED = 800
const cache = new Map<string, string>()
/** The footnotes of the text that is being made. */
let notes: Notes = new Map()
let scope = ''

const marked = new Marked({
  gfm: true,
  breaks: false,
  tokenizer: {
    // What is not a tag of ours is text, with the Markdown that is in it.
    html(src) {
      return isTag(src) ? false : undefined
    },
    tag(src) {
      if (isTag(src)) return false
      const raw = /^<(?:!--[\s\S]*?-->|[^<>]*>)/.exec(src)?.[0]
      return raw ? { type: 'html', raw, text: escaped(raw), inLink: false, inRawBlock: false, block: false } : undefined
    },
  },
  renderer: {
    heading({ tokens, depth }) {
      // A message stands below a heading of the page; its own are one level below that, and differ only in looks.
      return `<h3 class="depth-${Math.min(depth, 4)}">${this.parser.parseInline(tokens)}</h3>`
    },
    image({ href, text, title }) {
      const name = escaped(text || title || href)
      return `<a href="${escaped(href)}">${name}</a>`
    },
    table(token) {
      const rows = [token.header, ...token.rows].map((cells, row) => {
        const tag = row === 0 ? 'th' : 'td'
        const filled = cells.map(({ tokens, align }) => {
          const side = align ? ` class="align-${align}"` : ''
          return `<${tag}${side}>${this.parser.parseInline(tokens)}</${tag}>`
        })
        return `<tr>${filled.join('')}</tr>`
      })
      return `<div class="scroll" tabindex="0"><table><thead>${rows[0]}</thead><tbody>${rows.slice(1).join('')}</tbody></table></div>`
    },
    code({ text }) {
      return `<pre tabindex="0"><code>${escaped(text)}</code></pre>`
    },
  },
  extensions: [
    blockFormula,
    inlineFormula,
    footnote,
    footnoteMark((label) => {
      const number = notes.get(label)?.number
      if (number === undefined) return escaped(`[^${label}]`)
      return `<sup><a id="${scope}-mark-${number}" href="#${scope}-note-${number}" aria-label="Footnote ${number}">${number}</a></sup>`
    }),
  ],
})

/** Return a text as blocks. `name` tells its footnotes from those of other texts on the page. */
export function blocks(text: string, name = 'text'): Block[] {
  if (!DOMPurify.isSupported) throw new Error('this browser cannot show untrusted text safely')
  const tokens = marked.lexer(text)
  notes = numbered(tokens, (all, see) => marked.walkTokens(all, see))
  scope = name
  const shown = together(tokens.filter(({ type }) => !['space', 'def', 'footnote'].includes(type))).map(block)
  return notes.size ? [...shown, { kind: 'html', html: sanitised(notesList()) }] : shown
}

/** Return blocks that belong together, such as everything from `<details>` to `</details>`, in one list each. */
function together(tokens: Token[]): Token[][] {
  const groups: Token[][] = []
  for (let index = 0; index < tokens.length; index++) {
    const end = tokens[index]!.type === 'html' ? closedAt(tokens, index) : index
    groups.push(tokens.slice(index, end + 1))
    index = end
  }
  return groups
}

function block(tokens: Token[]): Block {
  const [first] = tokens
  if (tokens.length === 1 && first!.type === 'code') {
    const code = first as Tokens.Code
    return { kind: 'code', text: code.text, language: (code.lang ?? '').split(/\s/)[0]?.toLowerCase() ?? '' }
  }
  const raw = tokens.map((token) => token.raw).join('')
  // A footnote's number comes from the rest of the text.
  const key = notes.size && raw.includes('[^') ? `${scope} ${[...notes.keys()].join(' ')}\n${raw}` : raw
  const known = cache.get(key)
  if (known !== undefined) return { kind: 'html', html: known }
  legible(tokens, (all, see) => marked.walkTokens(all, see))
  const html = sanitised(marked.parser(tokens))
  if (cache.size >= CACHED) cache.delete(cache.keys().next().value!)
  cache.set(key, html)
  return { kind: 'html', html }
}

function notesList(): string {
  const items = [...notes.values()].map(({ number, tokens }) => {
    const back = `<a href="#${scope}-mark-${number}" aria-label="Back to the text">↩</a>`
    return `<li id="${scope}-note-${number}">${marked.Parser.parseInline(tokens, marked.defaults)} ${back}</li>`
  })
  return `<ol class="notes" aria-label="Footnotes">${items.join('')}</ol>`
}

const ALLOWED_TAGS =
  'a abbr b blockquote br code dd del details div dl dt em h3 hr i input kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td th thead tr u ul var'.split(
    ' ',
  )
/** Attributes that are no addresses; without this list they would be checked as if they were. */
const PLAIN_ATTR = ['title', 'class', 'id', 'start', 'tabindex', 'type', 'checked', 'disabled', 'aria-label']
const OWN_CLASSES = /^(depth-[1-4]|align-(left|right|center)|scroll|formula|formula-block|notes)$/
const OWN_IDS = /^[\w-]+-(mark|note)-\d+$/
/** Elements that begin on a line of their own: each is written in the direction of its text. */
const LINES = 'blockquote dd dt h3 ol p summary table ul'.split(' ')
/** Their own direction is that of all they hold, so nothing in them names one: numbers and columns begin where it does. */
const WHOLES = 'blockquote, ol, table, ul'

const purifier = DOMPurify()
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.hasAttribute('class') && !OWN_CLASSES.test(node.className)) node.removeAttribute('class')
  if (node.hasAttribute('id') && !OWN_IDS.test(node.id)) node.removeAttribute('id')
  if (LINES.includes(node.localName) && !node.parentElement?.closest(WHOLES)) node.setAttribute('dir', 'auto')
  if (node.localName === 'a' && !node.getAttribute('href')?.startsWith('#')) {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
  if (node.localName === 'input') {
    if (node.getAttribute('type') !== 'checkbox') node.remove()
    node.setAttribute('disabled', '')
    node.setAttribute('aria-label', node.hasAttribute('checked') ? 'Done' : 'Not done')
  }
})

function sanitised(html: string): string {
  return purifier.sanitize(html, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ['href', ...PLAIN_ATTR],
    ADD_URI_SAFE_ATTR: PLAIN_ATTR,
    ALLOW_DATA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#|\/)/i,
  })
}
