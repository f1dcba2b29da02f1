/** A long conversation in groups, so that what happens in one leaves the others alone. */

import type { Message } from '../context/session.ts'

export type Group = { key: number; messages: Message[] }

/** Groups end at fixed sequence numbers: earlier messages and new ones never move another from its group. */
const SPAN = 50

/** Return the messages in groups. One that is as it was in `before` is the same object. */
export function groupsOf(messages: readonly Message[], before: readonly Group[] = []): Group[] {
  const known = new Map(before.map((group) => [group.key, group]))
  const groups: Group[] = []
  for (const message of messages) {
    const key = Math.floor(message.seq / SPAN)
    const last = groups.at(-1)
    if (last?.key === key) last.messages.push(message)
    else groups.push({ key, messages: [message] })
  }
  return groups.map((group) => {
    const old = known.get(group.key)
    return old && equal(old.messages, group.messages) ? old : group
  })
}

function equal(one: readonly Message[], other: readonly Message[]): boolean {
  return one.length === other.length && one.every((message, index) => message === other[index])
}
