/** What the debug panel shows of a turn: a pure reading of its record, what it cost, and its answer. */

import type { ContextDebug, Source } from '../api/schema.ts'

/** Said of every turn without messages before it. */
export const NO_HISTORY = 'No conversation history!'
const RECENT_SOURCES = 5
const RELATED_TOPICS = 10

/** What was used and what it led to, latest first, as it stood after the answer. */
export function afterAnswer(
  debug: Pick<ContextDebug, 'recent_sources_used' | 'available_related_documents'>,
  answer: { sources: readonly Source[]; related: readonly string[] } | null,
): { sources: string[]; related: string[] } {
  return {
    sources: first(
      [...(answer?.sources ?? []).map(({ title }) => title), ...debug.recent_sources_used],
      RECENT_SOURCES,
    ),
    related: first([...(answer?.related ?? []), ...debug.available_related_documents], RELATED_TOPICS),
  }
}

/** What looks wrong; a follow-up that nothing related could help counts too. */
export function warningsOf(
  debug: Pick<ContextDebug, 'warnings' | 'available_related_documents'>,
  followUp: boolean,
): string[] {
  const alone = followUp && !debug.available_related_documents.length
  return alone ? [...debug.warnings, 'Related doc not available for follow-up'] : debug.warnings
}

function first(titles: readonly string[], count: number): string[] {
  return [...new Set(titles)].slice(0, count)
}
