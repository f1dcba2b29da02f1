/** What stands beside a conversation, written into the session's working context so that it can be opened again. */

import { call } from '../api/call.ts'
import type { LiveSession } from '../live/session.svelte.ts'
import type { Applet } from '../routing/route.ts'

/** Views of the page itself: they look at the session, and are no part of its work. */
const OF_THE_PAGE = ['debug']

/** Return an applet as the set `applet` has it: the slug, then every parameter as `key=value`. Null: nothing to keep. */
export function itemsOf(applet: Applet | null): string[] | null {
  if (!applet || OF_THE_PAGE.includes(applet.slug)) return null
  return [applet.slug, ...applet.params.map(([name, value]) => `${name}=${value}`)]
}

/** What was left out by hand, by session: it is not kept again while it stays the same. */
const leftOut = new Map<string, string>()

/** Do not tell the model what stands beside a session, until something else does. */
export async function leaveOut(session: LiveSession): Promise<void> {
  leftOut.set(session.id, JSON.stringify(session.state?.sets['applet'] ?? []))
  const body = { setContext: { setName: 'applet', items: [] }, sessionId: session.id }
  await call('update_session', { path: { session_id: session.id }, body })
}

/**
 * Keep which applet stands beside a session.
 *
 * Address and body name the same session, and the server refuses a change whose names differ: what was beside one
 * session is never kept in another, also when the page has gone on by the time it arrives.
 */
export async function capture(session: LiveSession, applet: Applet): Promise<void> {
  const items = itemsOf(applet)
  const state = session.state
  if (!items || !state || state.deleted || session.connection === 'gone') return
  if (JSON.stringify(items) === JSON.stringify(state.sets['applet'] ?? [])) return
  if (leftOut.get(session.id) === JSON.stringify(items)) return
  leftOut.delete(session.id)
  const body = { setContext: { setName: 'applet', items }, sessionId: session.id }
  try {
    await call('update_session', { path: { session_id: session.id }, body }, { keepalive: true })
  } catch {
    // It is kept the next time; no caller waits for it.
  }
}
