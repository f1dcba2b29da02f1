/** A turn in one line: what its model was given, what that cost, and how much more it was than the turn before. */

import type { TurnReceipt } from '../api/schema.ts'
import { costText } from '../ui/money.ts'
import { counted } from '../ui/words.ts'
import { inDigits, windowUse, type WindowUse } from './parts.ts'

const NAMED_REFERENCES = 3

/** Whether a provider has told what each call of the turn took in. */
function isReported({ calls, usage, without_usage, built_in }: TurnReceipt): boolean {
  return Boolean(calls && !without_usage && !built_in && usage.input_tokens)
}

/** What all calls of the turn took in; our own count of its first request while no provider has told. */
export function tokensOf(receipt: TurnReceipt): number {
  return isReported(receipt) ? receipt.usage.input_tokens : receipt.context_tokens
}

/** Return the parts of the window that the turn's request took. */
export function useOf(receipt: TurnReceipt): WindowUse {
  const { window_tokens, reply_tokens, parts, items } = receipt
  return windowUse({ parts, items: items.filter(({ sent }) => sent), budget: { window_tokens, reply_tokens } })
}

/** Return the line piece by piece. `before` is the turn before, when it is known. */
export function receiptLine(receipt: TurnReceipt, before: TurnReceipt | null): string[] {
  const given = receipt.items.filter((item) => item.sent)
  const sent = given.filter((item) => !item.carried)
  const earlier = given.length - sent.length
  const of = (type: string) => sent.filter((item) => item.type === type)
  const references = of('reference')
  const left = receipt.left_out + receipt.items.length - given.length
  const more = before ? receipt.context_tokens - before.context_tokens : 0
  return [
    `${inDigits(tokensOf(receipt))} tokens${receipt.calls > 1 ? `${isReported(receipt) ? ' in' : ','} ${receipt.calls} calls` : ''}`,
    receipt.cost_usd === null ? '' : costText(receipt.cost_usd, receipt.without_usage + receipt.without_price),
    of('rule').length ? counted(of('rule').length, 'rule') : '',
    references.length ? `${counted(references.length, 'reference')}${named(references)}` : '',
    of('tool').length ? counted(of('tool').length, 'tool') : '',
    earlier ? `${inDigits(earlier)} from earlier turns` : '',
    left ? `${inDigits(left)} left out` : '',
    before && more ? `${signed(more)} since turn ${before.turn}` : '',
  ].filter(Boolean)
}

export function signed(count: number): string {
  return count > 0 ? `+${inDigits(count)}` : count < 0 ? `−${inDigits(-count)}` : '±0'
}

/** A score as short as can be: `.79`, and `1.0` for the highest. */
export function shortScore(score: number): string {
  return score >= 0.995 ? '1.0' : score.toFixed(2).slice(1)
}

function named(items: TurnReceipt['items']): string {
  const scored = items
    .filter(({ score }) => score !== null)
    .sort((one, other) => (other.score ?? 0) - (one.score ?? 0))
    .slice(0, NAMED_REFERENCES)
  return scored.length ? ` (${scored.map(({ name, score }) => `${name} ${shortScore(score ?? 0)}`).join(', ')})` : ''
}
