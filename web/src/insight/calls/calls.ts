/** Calls as people read them: their sum, and a body cut into the stretches of its owners. */

import type { CallList, CallView, Step, WireSpan } from '../../api/schema.ts'
import { inDigits } from '../../context/parts.ts'
import { costText } from '../../ui/money.ts'
import { span } from '../../ui/time.ts'
import { counted } from '../../ui/words.ts'

export type OwnerKind = WireSpan['kind']
export type Stretch = { text: string; kind: OwnerKind; owner: string }
export type Owner = { kind: OwnerKind; owner: string; bytes: number }
export type KindShare = { kind: OwnerKind; title: string; bytes: number }

export const KIND_TITLES: Record<OwnerKind, string> = {
  message: 'Message',
  item: 'Item',
  tool: 'Tool',
  setting: 'Setting',
  step: 'Earlier step',
  model: 'Model’s own words',
  mapping: 'Client library',
}

export const OUTCOMES: Record<CallView['outcome'], string> = {
  complete: 'complete',
  cut: 'cut off',
  error: 'failed',
  retried: 'failed, tried again',
  running: 'running',
  lost: 'end unknown',
}

/** Return a body as its stretches. The server counts characters, of which some take two places in a string here. */
export function stretchesOf(body: string, spans: readonly WireSpan[]): Stretch[] {
  let character = 0
  let place = 0
  return spans.map(({ end, kind, owner }) => {
    const start = place
    for (; character < end; character++) place += body.codePointAt(place)! > 0xffff ? 2 : 1
    return { text: body.slice(start, place), kind, owner }
  })
}

/** Return what each owner has of a body, the largest first. */
export function ownersOf(stretches: readonly Stretch[]): Owner[] {
  const encoder = new TextEncoder()
  const found = new Map<string, Owner>()
  for (const { text, kind, owner } of stretches) {
    const key = `${kind} ${owner}`
    const before = found.get(key)?.bytes ?? 0
    found.set(key, { kind, owner, bytes: before + encoder.encode(text).length })
  }
  return [...found.values()].sort((one, other) => other.bytes - one.bytes)
}

/** Return what each kind of owner has of a body, always in the same order. */
export function kindsOf(owners: readonly Owner[]): KindShare[] {
  return (Object.keys(KIND_TITLES) as OwnerKind[])
    .map((kind) => ({
      kind,
      title: KIND_TITLES[kind],
      bytes: owners.filter((owner) => owner.kind === kind).reduce((sum, { bytes }) => sum + bytes, 0),
    }))
    .filter(({ bytes }) => bytes > 0)
}

/** A call to a built-in model, whose usage no provider reports. A file of an earlier version does not tell these. */
const isInProcess = ({ built_in, usage }: Used) => Boolean(built_in) && usage === null

/** Return our own count of what calls were given, or nothing where we did not count. */
function countedTokens(calls: readonly Used[]): string {
  const tokens = calls.flatMap(({ counted_tokens }) => counted_tokens ?? [])
  return tokens.length ? inDigits(tokens.reduce((sum, one) => sum + one, 0)) : ''
}

/** Return the calls in one line. What is unknown is said, and never counted as nothing. */
export function togetherText({ calls, usage, cost_usd, without_usage, without_price }: CallList): string {
  if (!calls.length) return 'none recorded'
  if (calls.filter(({ outcome }) => outcome === 'running').length === calls.length)
    return `${counted(calls.length, 'call')}, running`
  const inProcess = calls.filter(isInProcess)
  if (inProcess.length === calls.length) {
    const ours = countedTokens(calls)
    return [`${counted(calls.length, 'call')} in this process`, ours && `${ours} in, our count`, 'free']
      .filter(Boolean)
      .join(' · ')
  }
  const unknown = (count: number) => (count ? ` (${counted(count, 'call')} unknown)` : '')
  const tokens =
    without_usage === calls.length
      ? 'tokens unknown'
      : `${inDigits(usage.input_tokens)} tokens in, ${inDigits(usage.output_tokens)} out${unknown(without_usage)}`
  const cost = cost_usd === null ? 'cost unknown' : costText(cost_usd, without_usage + without_price)
  const apart = inProcess.length ? ` (${inDigits(inProcess.length)} in this process)` : ''
  return [`${counted(calls.length, 'call')}${apart}`, tokens, cost].join(' · ')
}

/** What tells the usage of a call. A file of an earlier version does not say that its output is unknown. */
type Used = Pick<CallView, 'usage' | 'outcome'> &
  Partial<Pick<CallView, 'output_unknown' | 'built_in' | 'counted_tokens'>>

/** Return what the provider reported for one call; while it runs there is nothing to report yet. */
export function usageText(one: Used): string {
  const { usage, outcome, output_unknown } = one
  if (isInProcess(one)) return countedTokens([one]) && `${countedTokens([one])} in, our count`
  if (usage === null) return outcome === 'running' ? 'running' : 'tokens unknown'
  const cached = usage.cache_read_tokens ? ` (${inDigits(usage.cache_read_tokens)} cached)` : ''
  const given = usage.input_tokens ? inDigits(usage.input_tokens) : 'unknown'
  return `${given} in${cached}, ${output_unknown ? 'unknown' : inDigits(usage.output_tokens)} out`
}

/** Tell whether the provider reported both what the call was given and what it answered. */
export function isUsageKnown({ usage, output_unknown }: CallView): boolean {
  return Boolean(usage?.input_tokens) && !output_unknown
}

/** Return how long a call took and what it cost. */
export function timeText({ duration_ms, cost_usd, outcome }: CallView): string {
  if (outcome === 'running') return ''
  const time = duration_ms === null ? 'time unknown' : span(duration_ms)
  return `${time} · ${cost_usd === null ? 'cost unknown' : costText(cost_usd)}`
}

/** One line of a turn's time: a call, or a tool that its answer asked for. `from` and `ms` are milliseconds. */
export type Bar = { from: number; ms: number } & (
  { kind: 'call'; call: CallView } | { kind: 'tool'; name: string; outcome: 'done' | 'failed' | 'open' }
)

/** Return calls and tools in the order in which they began. When a tool began is not on record: after its call. */
export function barsOf(calls: readonly CallView[], steps: readonly Step[]): Bar[] {
  const begin = Math.min(...calls.map(beganAt))
  return calls.flatMap((call): Bar[] => {
    const from = beganAt(call) - begin
    const ms = call.duration_ms ?? 0
    const ended = call.purpose === 'answer' && call.outcome !== 'retried' && call.outcome !== 'error'
    const step = ended ? steps[call.step - 1] : undefined
    const tools = (step?.tool_calls ?? []).map((tool): Bar => {
      const result = step?.results.find(({ call_id }) => call_id === tool.id)
      const name = tool.ref ? `${tool.ref.server ? `${tool.ref.server}.` : ''}${tool.ref.name}` : tool.offered_name
      const outcome = result ? (result.is_error ? 'failed' : 'done') : 'open'
      return { kind: 'tool', name, outcome, from: from + ms, ms: result?.latency_ms ?? 0 }
    })
    return [{ kind: 'call', call, from, ms }, ...tools]
  })
}

/** A call whose wire was not seen is on record when it ended, unless a source told when it began. */
function beganAt(call: CallView): number {
  return Date.parse(call.started_at) - (call.seen || call.size ? 0 : (call.duration_ms ?? 0))
}
