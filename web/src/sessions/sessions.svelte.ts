/** The list of sessions: what there is, what is new in it since it was last looked at, and what is being deleted. */

import { call, ProblemError } from '../api/call.ts'
import type { NewSession, SessionListView, SessionView } from '../api/schema.ts'
import { kept } from '../ui/kept.ts'
import { toasts, UNDO_MS } from '../ui/toasts.svelte.ts'

const PAGE = 60
const REFRESH_MS = 15_000
const PAUSE_MS = 250
const seenBefore = kept<Record<string, number>>('seen')

/** A session's name, or what to call one that has none. */
export function nameOf(session: { name: string; title?: string }): string {
  return session.name || session.title || 'New session'
}

class Sessions {
  #all: SessionView[] = $state.raw([])
  #leaving: Record<string, ReturnType<typeof setTimeout>> = $state.raw({})
  #seen: Record<string, number> = $state.raw(seenBefore.value ?? {})
  #cursor: string | null = $state(null)
  #known = 0
  loaded = $state(false)
  problem: ProblemError | null = $state.raw(null)
  /** Whether the server is still looking for sessions that hold the words. */
  searching = $state(false)
  /** Whether only names are searched, because conversations are encrypted. */
  namesOnly = $state(false)
  #query = $state('')
  #found: SessionView[] = $state.raw([])
  #foundCursor: string | null = $state(null)
  #search = 0
  #pause: ReturnType<typeof setTimeout> | undefined

  readonly list: SessionView[] = $derived(
    (this.#words ? this.#found : this.#all).filter((session) => !this.#leaving[session.id]),
  )
  readonly more = $derived((this.#words ? this.#foundCursor : this.#cursor) !== null)

  get #words(): string {
    return this.#query.trim()
  }

  /** The words that are searched for, in names and in conversations; empty: the list is everything. */
  get query(): string {
    return this.#query
  }

  set query(text: string) {
    const before = this.#words
    this.#query = text
    const words = this.#words
    if (words === before) return
    clearTimeout(this.#pause)
    this.#search++
    this.searching = words !== ''
    this.#foundCursor = null
    // Those whose names are known to hold the words are there at once; the server finds the others.
    this.#found = words ? this.#all.filter((session) => inName(session, words)) : []
    if (words) this.#pause = setTimeout(() => void this.#find(words), PAUSE_MS)
  }

  async #find(words: string): Promise<void> {
    const search = ++this.#search
    const found: SessionView[] = []
    let cursor: string | null = null
    try {
      // The server looks through so many sessions at a time, and may find none among them.
      do {
        const query: { q: string; limit: number; cursor?: string } = { q: words, limit: PAGE }
        const page: SessionListView = await call('list_sessions', { query: cursor ? { ...query, cursor } : query })
        if (search !== this.#search) return
        found.push(...page.sessions)
        cursor = page.cursor
      } while (cursor && !found.length)
      this.#found = found
      this.#foundCursor = cursor
      this.problem = null
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      if (search !== this.#search) return
      this.problem = error
    }
    this.searching = false
  }

  readonly #others = new BroadcastChannel('windowpane:sessions')

  /** Keep the list current until the returned function is called. */
  start(): () => void {
    const refresh = () => document.visibilityState === 'visible' && void this.refresh()
    const leave = () => this.#deleteNow()
    const timer = setInterval(refresh, REFRESH_MS)
    this.#others.onmessage = () => void this.refresh()
    document.addEventListener('visibilitychange', refresh)
    addEventListener('online', refresh)
    addEventListener('pagehide', leave)
    void this.refresh()
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', refresh)
      removeEventListener('online', refresh)
      removeEventListener('pagehide', leave)
    }
  }

  async refresh(): Promise<void> {
    try {
      const { sessions, cursor, names_only } = await call('list_sessions', {
        query: { limit: Math.min(200, Math.max(PAGE, this.#known)) },
      })
      this.#all = sessions
      this.#known = sessions.length
      this.#cursor = cursor
      this.namesOnly = names_only
      this.problem = null
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      this.problem = error
    }
    this.loaded = true
  }

  async loadMore(): Promise<void> {
    if (this.#words) return this.#findMore()
    if (!this.#cursor) return
    const { sessions, cursor } = await call('list_sessions', { query: { limit: PAGE, cursor: this.#cursor } })
    const there = new Set(this.#all.map(({ id }) => id))
    this.#all = [...this.#all, ...sessions.filter(({ id }) => !there.has(id))]
    this.#known = this.#all.length
    this.#cursor = cursor
  }

  async #findMore(): Promise<void> {
    if (!this.#foundCursor || this.searching) return
    const search = this.#search
    this.searching = true
    try {
      const query = { q: this.#words, limit: PAGE, cursor: this.#foundCursor }
      const { sessions, cursor } = await call('list_sessions', { query })
      if (search !== this.#search) return
      this.#found = [...this.#found, ...sessions]
      this.#foundCursor = cursor
    } finally {
      if (search === this.#search) this.searching = false
    }
  }

  async create(wanted: NewSession): Promise<SessionView> {
    const session = await this.#createIn(Intl.DateTimeFormat().resolvedOptions().timeZone, wanted)
    this.#all = [session, ...this.#all]
    this.changed()
    return session
  }

  /** Create a session that knows the reader's time zone, unless the server does not know that zone. */
  async #createIn(zone: string | undefined, wanted: NewSession): Promise<SessionView> {
    if (!zone) return call('create_session', { body: wanted })
    try {
      return await call('create_session', { body: { ...wanted, settings: { time_zone: zone, ...wanted.settings } } })
    } catch (error) {
      if (error instanceof ProblemError && error.message.startsWith('time_zone')) return this.#createIn('', wanted)
      throw error
    }
  }

  async rename(id: string, name: string): Promise<void> {
    const session = await call('update_session', { path: { session_id: id }, body: { name } })
    this.#all = this.#all.map((one) => (one.id === id ? session : one))
    this.#found = this.#found.map((one) => (one.id === id ? session : one))
    this.changed()
  }

  /** Delete a session a little later, so that it can be undone until then. */
  remove(session: SessionView): void {
    const timer = setTimeout(() => void this.#delete(session.id), UNDO_MS)
    this.#leaving = { ...this.#leaving, [session.id]: timer }
    toasts.show(`Deleted “${nameOf(session)}”`, { action: { text: 'Undo', run: () => this.#keep(session.id) } })
  }

  /** Tell the list, here and in other tabs, that something about a session is different. */
  changed(): void {
    void this.refresh()
    this.#others.postMessage('changed')
  }

  unread(session: SessionView): boolean {
    const seen = this.#seen[session.id]
    return seen !== undefined && session.message_count > seen
  }

  /** Remember that this much of a session was seen. */
  see(id: string, messages: number): void {
    if (this.#seen[id] === messages) return
    this.#seen = { ...seenBefore.value, ...this.#seen, [id]: messages }
    seenBefore.value = this.#seen
  }

  messageCount(id: string): number | null {
    return this.#all.find((session) => session.id === id)?.message_count ?? null
  }

  #keep(id: string): void {
    clearTimeout(this.#leaving[id])
    const { [id]: _, ...others } = this.#leaving
    this.#leaving = others
  }

  async #delete(id: string): Promise<void> {
    try {
      await call('delete_session', { path: { session_id: id } }, { keepalive: true })
      this.#all = this.#all.filter((session) => session.id !== id)
      this.#found = this.#found.filter((session) => session.id !== id)
    } catch (error) {
      if (!(error instanceof ProblemError && error.problem.status === 404)) toasts.failed(error)
    }
    this.#keep(id)
    this.changed()
  }

  #deleteNow(): void {
    for (const id of Object.keys(this.#leaving)) void this.#delete(id)
  }
}

function inName(session: SessionView, words: string): boolean {
  return session.name.toLowerCase().includes(words.toLowerCase())
}

export const sessions = new Sessions()
