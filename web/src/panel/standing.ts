/** What is amiss with an item of a session at this moment. */

import type { ContextItem, ItemView, ServerView } from '../api/schema.ts'

type Facts = {
  type: 'rule' | 'reference' | 'tool'
  /** The item as the agent has it, and as the next request would; undefined when it is in neither. */
  known: ItemView | undefined
  sent: Pick<ContextItem, 'status' | 'reason'> | undefined
  /** A tool's server; null when nothing was told of it. */
  server: Pick<ServerView, 'state' | 'error'> | null
  /** Whether the agent's items have been read. */
  listed: boolean
}

/** Return it in words; nothing when all is well, or it is not known yet. */
export function standing({ type, known, sent, server, listed }: Facts): string {
  if (server?.state === 'connecting') return 'Its server is starting'
  if (server?.state === 'failed') return `Its server is not available${server.error ? `: ${server.error}` : ''}`
  if (server?.state === 'disabled') return 'Its server is switched off'
  if (sent) return sent.status === 'used' ? '' : sent.reason
  const readable = type === 'tool' ? server !== null : listed
  return known || !readable ? '' : 'No longer in the agent'
}
