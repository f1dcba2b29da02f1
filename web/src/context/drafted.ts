/** What a message that is not sent yet would change: the items that it alone brings in, and the candidates it leaves. */

import type { Candidate, ContextItem, RequestContext, SessionItem } from '../api/schema.ts'
import { inDigits } from './parts.ts'
import { same } from './session.ts'

/** The server of tools that are part of the product: they are in every request. */
const BUILT_IN = 'windowpane'

export function builtIn(item: { server?: string | null }): boolean {
  return item.server === BUILT_IN
}

/** Return both, the highest score first. Items that the message names come before those that it is searched with. */
export function drafted(
  context: Pick<RequestContext, 'items' | 'candidates' | 'carried'>,
  held: readonly SessionItem[],
): { selected: ContextItem[]; leftOut: Candidate[] } {
  const fresh = context.items.filter((item) => !builtIn(item) && !held.some(({ ref }) => same(ref, item)))
  return {
    selected: fresh.sort((one, other) => (other.evidence?.score ?? 2) - (one.evidence?.score ?? 2)),
    leftOut: considered(context).sort((one, other) => (other.evidence?.score ?? -1) - (one.evidence?.score ?? -1)),
  }
}

/** Return what the list of what was left out is about. */
export function leftOutText(context: Pick<RequestContext, 'candidates' | 'carried'>): string {
  const count = considered(context).length
  return count ? `${inDigits(count)} considered, not selected` : 'why, and what can be done'
}

/** Return the candidates that the model does not get: not those that stand in the prompt since an earlier turn. */
export function considered(context: Pick<RequestContext, 'candidates' | 'carried'>): Candidate[] {
  return context.candidates.filter((candidate) => !context.carried.some((item) => same(item, candidate)))
}
