/** Where a text has the words that were searched for, as the server finds them: from the beginning of a word. */

export type MarkedPart = { text: string; found: boolean }

const DENSE =
  /[\u0e00-\u0eff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]/u

export function marked(text: string, words: readonly string[]): MarkedPart[] {
  const patterns = words.map((word) => {
    const plain = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    return DENSE.test(word) ? plain : `(?<![\\p{L}\\p{N}])${plain}`
  })
  if (!patterns.length) return [{ text, found: false }]
  const parts: MarkedPart[] = []
  let end = 0
  for (const match of text.matchAll(new RegExp(patterns.join('|'), 'giu'))) {
    if (match.index > end) parts.push({ text: text.slice(end, match.index), found: false })
    parts.push({ text: match[0], found: true })
    end = match.index + match[0].length
  }
  if (end < text.length || !parts.length) parts.push({ text: text.slice(end), found: false })
  return parts
}
