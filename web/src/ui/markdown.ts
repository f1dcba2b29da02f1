/**
 * Markdown as safe HTML, block by block.
 *
 * What models and web pages write is never trusted: it is sanitised, has no styles of its own, and loads nothing from
 * elsewhere (an image becomes a link to it). A text that grows is cheap: only its last block is made anew.
 */

import DOMPurify from 'dompurify'
import { Marked, type Token, type Tokens } from 'marked'

export type Block = { kind: 'html'; html: string } | { kind: 'code'; text: string; language: string }

const CACHED = 800
const cache = new Map<string, string>()

const marked = new Marked({
  gfm: true,
  breaks: false,
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
})

export function blocks(text: string): Block[] {
  if (!DOMPurify.isSupported) throw new Error('this browser cannot show untrusted text safely')
  return marked
    .lexer(text)
    .filter((token) => token.type !== 'space' && token.type !== 'def')
    .map(block)
}

function block(token: Token): Block {
  if (token.type === 'code') {
    const code = token as Tokens.Code
    return { kind: 'code', text: code.text, language: (code.lang ?? '').split(/\s/)[0]?.toLowerCase() ?? '' }
  }
  const known = cache.get(token.raw)
  if (known !== undefined) return { kind: 'html', html: known }
  const html = sanitised(marked.parser([token]))
  if (cache.size >= CACHED) cache.delete(cache.keys().next().value!)
  cache.set(token.raw, html)
  return { kind: 'html', html }
}

const ALLOWED_TAGS =
  'a abbr b blockquote br code dd del details div dl dt em h3 hr i input kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td th thead tr u ul var'.split(
    ' ',
  )
const ALLOWED_ATTR = [
  'href',
  'title',
  'class',
  'start',
  'tabindex',
  'type',
  'checked',
  'disabled',
  'target',
  'rel',
  'aria-label',
]
const OWN_CLASSES = /^(depth-[1-4]|align-(left|right|center)|scroll)$/

const purifier = DOMPurify()
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.hasAttribute('class') && !OWN_CLASSES.test(node.className)) node.removeAttribute('class')
  if (node.tagName === 'A') {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
  if (node.tagName === 'INPUT') {
    if (node.getAttribute('type') !== 'checkbox') node.remove()
    node.setAttribute('disabled', '')
    node.setAttribute('aria-label', node.hasAttribute('checked') ? 'Done' : 'Not done')
  }
})

function sanitised(html: string): string {
  return purifier.sanitize(html, {
    ALLOWED_TAGS,
    ALLOWED_ATTR,
    ALLOW_DATA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#|\/)/i,
  })
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
