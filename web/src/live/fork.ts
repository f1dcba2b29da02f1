/** A copy of a session as it was before one of its turns, to go on differently from there. */

import { call } from '../api/call.ts'
import type { Attachment, FileBody, ItemRefInput, SessionSettings } from '../api/schema.ts'

/** What is to be different in the copy, and how that is named. */
export type Wish = {
  name: string
  settings?: Partial<SessionSettings>
  add?: ItemRefInput[]
  without?: ItemRefInput[]
}

const LONGEST_NAME = 200

/** Return the id of the copy. `of` is the name of the session; the copy's name says what is different in it. */
export async function forked(session: string, turn: number, of = '', wish: Wish | null = null): Promise<string> {
  const name = wish && of ? { name: `${of} · ${wish.name}`.slice(0, LONGEST_NAME) } : {}
  const { id } = await call('fork_session', { path: { session_id: session }, body: { turn, ...name } })
  const path = { session_id: id }
  if (wish?.settings) await call('update_session', { path, body: { settings: wish.settings } })
  for (const ref of wish?.add ?? []) await call('add_session_item', { path, body: ref })
  for (const ref of wish?.without ?? []) await call('exclude_session_item', { path, body: ref })
  return id
}

/** Return the files of a message, to send them again. */
export async function filesOf(session: string, attachments: Attachment[]): Promise<FileBody[]> {
  return attachments.length ? (await import('./files.ts')).again(session, attachments) : []
}
