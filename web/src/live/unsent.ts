/** Messages that the server does not have yet, so that a page which is loaded again still has them. */

import type { Pending } from '../context/session.ts'

const PREFIX = 'windowpane:unsent:'
/** What the browser's storage has no room for. */
const memory = new Map<string, Pending[]>()

export function unsent(session: string): Pending[] {
  const here = memory.get(session)
  if (here) return here
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + session) ?? '[]') as Pending[]
  } catch {
    return []
  }
}

export function keepUnsent(session: string, messages: Pending[]): void {
  memory.delete(session)
  try {
    sessionStorage.removeItem(PREFIX + session)
    if (messages.length) sessionStorage.setItem(PREFIX + session, JSON.stringify(messages))
  } catch {
    memory.set(session, messages)
  }
}
