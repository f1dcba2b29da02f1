/** Addresses: every place of the page has one, and `parse` and `href` are each other's inverse. */

import { ROOT, withoutRoot } from '../api/root.ts'

export type ItemType = 'rule' | 'reference' | 'tool'
export type ItemName = { type: ItemType; name: string; server?: string }

/** A part of an agent beside its items: something new, a prompt or site skill, its settings, or any file as it is. */
export type AgentPart =
  | { kind: 'new'; type: 'rule' | 'reference' | 'site' }
  | { kind: 'prompt' | 'file'; name: string }
  | { kind: 'settings' }

/** In a session: a turn's context, an item of it, its prompt at one of its parts, or its answer beside the original's. */
export type Place =
  | { view: 'new'; agent?: string }
  | { view: 'session'; session: string; turn?: number; item?: ItemName; prompt?: string; beside?: boolean }
  | { view: 'agents' }
  | { view: 'agent'; agent: string; item?: ItemName; part?: AgentPart }
  | { view: 'analytics'; filters?: AnalyticsFilters }
  | { view: 'shared' }
  | { view: 'unknown'; path: string }

/** Which turns count: of the last `days`, of an agent, of a model; everyone's, for those who may see them. */
export type AnalyticsFilters = { days?: string; agent?: string; model?: string; everyone?: string }
const FILTERS = ['days', 'agent', 'model', 'everyone'] as const satisfies (keyof AnalyticsFilters)[]

/** A tool beside the conversation, with its parameters in their order. It can stand beside any place. */
export type Applet = { slug: string; params: [string, string][] }
export type Address = { place: Place; applet: Applet | null }

const TYPES: readonly string[] = ['rule', 'reference', 'tool'] satisfies ItemType[]

export function parse(url: string, root: string = ROOT): Address {
  const { pathname, searchParams } = new URL(url, 'http://page')
  const place = placeOf(withoutRoot(pathname, root), searchParams.get('server'))
  if (place.view === 'analytics') return { place: withFilters(searchParams), applet: null }
  const agent = searchParams.get('agent')
  if (place.view === 'new' && agent && !searchParams.get('applet')) return { place: { ...place, agent }, applet: null }
  return { place, applet: appletOf(searchParams) }
}

export function href(place: Place, applet: Applet | null = null, root: string = ROOT): string {
  const [inside, server] = pathOf(place)
  const path = root + inside
  const search = new URLSearchParams()
  if (server !== undefined) search.append('server', server)
  if (place.view === 'new' && place.agent !== undefined) search.append('agent', place.agent)
  if (place.view === 'analytics')
    for (const [name, value] of Object.entries(place.filters ?? {})) search.append(name, value)
  if (applet) search.append('applet', applet.slug)
  for (const [name, value] of applet?.params ?? []) search.append(name, value)
  const query = search.toString()
  return query ? `${path}?${query}` : path
}

function placeOf(pathname: string, server: string | null): Place {
  const parts = pathname.split('/').filter(Boolean).map(decoded)
  const [first, second, third, fourth] = parts
  if (first === undefined) return { view: 'new' }
  if (first === 's' && second !== undefined) {
    if (parts.length === 2) return { view: 'session', session: second }
    const turn = Number(fourth)
    if (third === 't' && Number.isInteger(turn) && turn > 0) {
      if (parts.length === 4) return { view: 'session', session: second, turn }
      if (parts[4] === 'beside' && parts.length === 5) return { view: 'session', session: second, turn, beside: true }
      if (parts[4] === 'prompt' && parts.length < 7)
        return { view: 'session', session: second, turn, prompt: parts[5] ?? '' }
      const item = parts[4] === 'items' ? itemOf(parts.slice(5), server) : null
      if (item) return { view: 'session', session: second, turn, item }
    }
  }
  if (first === 'agents') {
    if (second === undefined) return { view: 'agents' }
    if (third === undefined) return { view: 'agent', agent: second }
    const item = itemOf(parts.slice(2), server)
    if (item) return { view: 'agent', agent: second, item }
    const part = partOf(parts.slice(2))
    if (part) return { view: 'agent', agent: second, part }
  }
  if (first === 'analytics' && second === undefined) return { view: 'analytics' }
  if (first === 'shared' && second === undefined) return { view: 'shared' }
  return { view: 'unknown', path: pathname }
}

function withFilters(search: URLSearchParams): Place {
  const given = FILTERS.flatMap((name) => (search.get(name) ? [[name, search.get(name)!] as const] : []))
  return given.length ? { view: 'analytics', filters: Object.fromEntries(given) } : { view: 'analytics' }
}

function itemOf([type, name, ...more]: string[], server: string | null): ItemName | null {
  if (type === undefined || name === undefined || more.length || !TYPES.includes(type)) return null
  return { type: type as ItemType, name, ...(server === null ? {} : { server }) }
}

function partOf([kind, name, ...more]: string[]): AgentPart | null {
  if (more.length) return null
  if (kind === 'new' && (name === 'rule' || name === 'reference' || name === 'site')) return { kind, type: name }
  if ((kind === 'prompt' || kind === 'file') && name !== undefined) return { kind, name }
  return kind === 'settings' && name === undefined ? { kind } : null
}

function appletOf(search: URLSearchParams): Applet | null {
  const slug = search.get('applet')
  if (!slug) return null
  return { slug, params: [...search].filter(([name]) => name !== 'applet' && name !== 'server') }
}

function pathOf(place: Place): [string, (string | undefined)?] {
  switch (place.view) {
    case 'new':
      return ['/']
    case 'session': {
      const { session, turn, item, prompt, beside } = place
      if (turn === undefined) return [joined('s', session)]
      if (beside) return [joined('s', session, 't', String(turn), 'beside')]
      if (prompt !== undefined) return [joined('s', session, 't', String(turn), 'prompt', ...(prompt ? [prompt] : []))]
      if (!item) return [joined('s', session, 't', String(turn))]
      return [joined('s', session, 't', String(turn), 'items', item.type, item.name), item.server]
    }
    case 'agents':
      return ['/agents']
    case 'agent':
      if (place.part) return [joined('agents', place.agent, ...partNames(place.part))]
      if (!place.item) return [joined('agents', place.agent)]
      return [joined('agents', place.agent, place.item.type, place.item.name), place.item.server]
    case 'analytics':
      return ['/analytics']
    case 'shared':
      return ['/shared']
    case 'unknown':
      return [place.path]
  }
}

function partNames(part: AgentPart): string[] {
  if (part.kind === 'settings') return [part.kind]
  return [part.kind, part.kind === 'new' ? part.type : part.name]
}

function joined(...parts: string[]): string {
  return `/${parts.map(encodeURIComponent).join('/')}`
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
