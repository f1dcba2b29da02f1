/**
 * Formulas in a text: `\(…\)`, `\[…\]`, `$…$` and `$$…$$`.
 *
 * They are first shown as they are written, and set in type once `typeset.ts` has loaded. A dollar that is money stays
 * one: a formula in dollars begins and ends without a space, and nothing is written right after it.
 */

import type { TokenizerAndRendererExtension, Tokens } from 'marked'
import { escaped } from './tags.ts'

const BLOCK = /^ {0,3}(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n+|$)/
const INLINE = [
  /^\\\(([\s\S]+?)\\\)/,
  /^\\\[(\s[\s\S]+?\s)\\\]/,
  /^\$\$([^$]+?)\$\$/,
  /^\$(?![\s$])((?:\\.|[^\\$\n])+?)(?<!\s)\$(?![\w$])/,
]
/** A sum of money and what is said after it, up to another dollar. */
const MONEY = /^\d[\d.,]*\s+[A-Za-z]{2}/

export const blockFormula: TokenizerAndRendererExtension = {
  name: 'blockFormula',
  level: 'block',
  start: (src) => /^ {0,3}(?:\$\$|\\\[)/m.exec(src)?.index,
  tokenizer(src) {
    const found = BLOCK.exec(src)
    return found ? { type: 'blockFormula', raw: found[0] } : undefined
  },
  renderer: (token) => `<p>${formula(token)}</p>`,
}

export const inlineFormula: TokenizerAndRendererExtension = {
  name: 'inlineFormula',
  level: 'inline',
  start: (src) => /\\[([]|(?<![\w\\$])\$(?!\s)/.exec(src)?.index,
  tokenizer(src) {
    for (const form of INLINE) {
      const found = form.exec(src)
      if (found && !MONEY.test(found[1]!)) return { type: 'inlineFormula', raw: found[0] }
    }
    return undefined
  },
  renderer: formula,
}

function formula(token: Tokens.Generic): string {
  const written = token.raw.trim()
  // What may be wider than the text scrolls, and what scrolls must be reachable by keyboard.
  const kind = /^(?:\$\$|\\\[)/.test(written) ? 'class="formula-block" tabindex="0"' : 'class="formula"'
  return `<span ${kind}>${escaped(written)}</span>`
}

/** Return a formula without the signs around it. */
export function withoutSigns(written: string): string {
  return written.replace(/^(?:\$\$?|\\[([])/, '').replace(/(?:\$\$?|\\[)\]])$/, '')
}
