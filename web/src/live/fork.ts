/** A copy of a session as it was before one of its turns, to go on differently from there. */

import { call } from '../api/call.ts'

export async function forked(session: string, turn: number): Promise<string> {
  const copy = await call('fork_session', { path: { session_id: session }, body: { turn } })
  return copy.id
}
