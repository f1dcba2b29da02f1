/** HTML inside Markdown: which tags are shown as what they mean, and which stay as the text that they are. */

import type { Token, Tokens } from 'marked'

/** Tags that a text may use. `Array<A>` and `vec<T>` are no tags: ours are written in small letters, and closed. */
const TAGS =
  'a abbr b blockquote br code dd del details div dl dt em hr i kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td th thead tr u ul var'.split(
    ' ',
  )
const NEVER_CLOSED = ['br', 'hr']
const TAG = /<(?:!--[\s\S]*?-->|[!?][^>]*>|(\/?)([A-Za-z][^\s/>]*)[^<>]*>)/g

type Tag = { token: Tokens.HTML; at: number; name: string; closes: boolean }
type Walk = (tokens: Token[], see: (token: Token) => void) => unknown

/** Tell whether a text begins with a tag that a text may use. */
export function isTag(text: string): boolean {
  const name = /^ {0,3}<\/?([A-Za-z][^\s/>]*)/.exec(text)?.[1]
  return name !== undefined && TAGS.includes(name)
}

/** Return where what is opened at `index` is closed, or `index` when it is closed there or never. */
export function closedAt(tokens: readonly Token[], index: number): number {
  let open: Tag[] = []
  for (let at = index; at < tokens.length; at++) {
    const token = tokens[at]!
    if (token.type !== 'html') continue
    open = paired([...open, ...tagsOf(token as Tokens.HTML)]).filter((tag) => !tag.closes)
    if (!open.length) return at
  }
  return index
}

/** Turn tags that nothing closes, or that close nothing, into text. */
export function legible(tokens: Token[], walk: Walk): void {
  const found: Tokens.HTML[] = []
  void walk(tokens, (token) => {
    if (token.type === 'html') found.push(token as Tokens.HTML)
  })
  const lone = paired(found.flatMap(tagsOf))
  for (const token of found) {
    const places = lone.filter((tag) => tag.token === token).map(({ at }) => at)
    token.text = token.text.replace(TAG, (tag, ...rest) => {
      const at = rest.find((one) => typeof one === 'number') as number
      return places.includes(at) ? escaped(tag) : tag
    })
  }
}

function tagsOf(token: Tokens.HTML): Tag[] {
  return [...token.text.matchAll(TAG)].map(({ index, 1: slash, 2: name }) => ({
    token,
    at: index,
    name: name ?? '',
    closes: slash === '/',
  }))
}

/** Return the tags that have no other half. */
function paired(tags: readonly Tag[]): Tag[] {
  const open: Tag[] = []
  const lone: Tag[] = []
  for (const tag of tags) {
    if (!TAGS.includes(tag.name)) lone.push(tag)
    else if (NEVER_CLOSED.includes(tag.name)) continue
    else if (!tag.closes) open.push(tag)
    else {
      const from = open.findLastIndex(({ name }) => name === tag.name)
      if (from < 0) lone.push(tag)
      else lone.push(...open.splice(from).slice(1))
    }
  }
  return [...lone, ...open]
}

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
