/** Footnotes: `[^label]` in the text, `[^label]: note` below it. A mark without a note stays as it is written. */

import type { Token, TokenizerAndRendererExtension, Tokens } from 'marked'

/** Notes by their labels, in the order in which the text names them; those that it does not name come last. */
export type Notes = Map<string, { number: number; tokens: Token[] }>

export const footnote: TokenizerAndRendererExtension = {
  name: 'footnote',
  level: 'block',
  start: (src) => /^\[\^[^\]\s]+\]:/m.exec(src)?.index,
  tokenizer(src) {
    const found = /^\[\^([^\]\s]+)\]:[ \t]*([^\n]*(?:\n(?!\s*\n|\[\^)[^\n]+)*)(?:\n+|$)/.exec(src)
    if (!found) return undefined
    const token: Tokens.Generic = { type: 'footnote', raw: found[0], label: found[1], tokens: [] }
    this.lexer.inline(found[2]!, token.tokens)
    return token
  },
  renderer: () => '',
  childTokens: ['tokens'],
}

export function footnoteMark(html: (label: string) => string): TokenizerAndRendererExtension {
  return {
    name: 'footnoteMark',
    level: 'inline',
    start: (src) => src.indexOf('[^'),
    tokenizer(src) {
      const found = /^\[\^([^\]\s]+)\]/.exec(src)
      return found ? { type: 'footnoteMark', raw: found[0], label: found[1] } : undefined
    },
    renderer: (token) => html(token['label'] as string),
  }
}

type Walk = (tokens: Token[], see: (token: Token) => void) => unknown

/** Return the notes of a text with their numbers. */
export function numbered(tokens: Token[], walk: Walk): Notes {
  const written = new Map<string, Token[]>()
  for (const token of tokens) {
    const label = (token as Tokens.Generic)['label'] as string
    if (token.type === 'footnote' && !written.has(label)) written.set(label, token.tokens ?? [])
  }
  const notes: Notes = new Map()
  const take = (label: string) => {
    const found = written.get(label)
    if (found && !notes.has(label)) notes.set(label, { number: notes.size + 1, tokens: found })
  }
  if (written.size)
    void walk(tokens, (token) => {
      if (token.type === 'footnoteMark') take(token['label'] as string)
    })
  for (const label of written.keys()) take(label)
  return notes
}
