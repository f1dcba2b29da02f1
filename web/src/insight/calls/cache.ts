/** What calls read from the provider's cache, and what broke the prefix, as people read it. */

import type { CacheCollapse, CacheReport, PrefixBreak } from '../../api/schema.ts'
import { inDigits } from '../../context/parts.ts'
import { dollars } from '../../ui/money.ts'

/** Return tokens that were billed again, and what that cost. */
export function billedText(tokens: number, cost: string | null): string {
  return `${inDigits(tokens)} tokens billed again, ${cost === null ? 'cost unknown' : dollars(cost)}`
}

/** Return a break in one sentence. */
export function breakText({ at, item, reason, lost_tokens, cost_usd }: PrefixBreak): string {
  const where = item === null ? at : `${item} (${at})`
  return `The prefix broke at ${where}, because ${reason}: ${billedText(lost_tokens, cost_usd)}.`
}

/** Return a collapse in one sentence. */
export function collapseText({ missing_tokens, reason, cost_usd }: CacheCollapse): string {
  const cost = cost_usd === null ? '' : `, ${dollars(cost_usd)}`
  return `The cache collapsed: ${inDigits(missing_tokens)} tokens fewer than expected${cost}; ${reason}.`
}

/** Return the whole session in one line. */
export function cacheText({ read_tokens, written_tokens, plain_tokens, lost_tokens, lost_usd }: CacheReport): string {
  const used = `${inDigits(read_tokens)} tokens read from the cache, ${inDigits(written_tokens)} written, ${inDigits(plain_tokens)} plain`
  return lost_tokens ? `${used}; ${billedText(lost_tokens, lost_usd)}` : used
}
