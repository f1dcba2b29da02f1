/** Two calls of a share file side by side, as the server compares those of a session. */

import type { CallComparison, CallPartChange, CallRecord, SentPart, SharedSession } from '../../api/schema.ts'
import { hunks, lineDiff, type Hunk } from '../../ui/lines.ts'

const AROUND = 2
const MOST_DIFF_LINES = 400

/** A part with what it says; `place` is that of its text in the file. */
type Said = { part: SentPart; place: number; text: string }

export function compareCalls(file: SharedSession, one: CallRecord, other: CallRecord): CallComparison {
  const before = saidIn(file, one)
  const after = saidIn(file, other)
  const lines = lineDiff(before.map(lineOf).join('\n'), after.map(lineOf).join('\n'))
  const begin = lines.findIndex(({ kind }) => kind !== 'same')
  return {
    before: one.call,
    after: other.call,
    before_tokens: tokensOf(before),
    after_tokens: tokensOf(after),
    same_bytes: sameBytes(one.body ?? '', other.body ?? ''),
    same_tokens: tokensOf(begin < 0 ? after : after.slice(0, begin)),
    changes: hunks(lines, 0).flatMap((stretch) => changesOf(stretch, before, after)),
    tokens_by_kind: byKind(before, after),
  }
}

function saidIn(file: SharedSession, { call }: CallRecord): Said[] {
  const { record, read } = file.calls[call.number - 1]!
  return read.map(({ part, text }) => ({ part: record.parts[part]!, place: text, text: file.texts[text]! }))
}

/** A part as one line, so that parts are compared as the lines of a text are. */
function lineOf({ part, place }: Said): string {
  return `${part.kind} ${place} ${JSON.stringify(part.name)}`
}

/** Return the changes of a stretch that is different: parts of one kind and name belong together. */
function changesOf(stretch: Hunk, before: readonly Said[], after: readonly Said[]): CallPartChange[] {
  const left = stretch.flatMap((line) => (line.kind === 'old' ? [before[line.before! - 1]!] : []))
  const came = stretch.flatMap((line) => (line.kind === 'new' ? [after[line.after! - 1]!] : []))
  const changes = came.map(({ part, text }) => {
    const at = part.name ? left.findIndex((old) => old.part.kind === part.kind && old.part.name === part.name) : -1
    if (at < 0) return changed(part, 'entered', part.tokens, '', text)
    const [old] = left.splice(at, 1)
    return changed(part, 'changed', part.tokens - old!.part.tokens, old!.text, text)
  })
  return [...changes, ...left.map(({ part, text }) => changed(part, 'left', -part.tokens, text, ''))]
}

function changed(
  { kind, name }: SentPart,
  happened: CallPartChange['happened'],
  tokens: number,
  before: string,
  after: string,
): CallPartChange {
  return { kind, name, happened, tokens, diff: difference(before, after) }
}

/** Return a unified diff. */
function difference(before: string, after: string): string {
  const lines = hunks(lineDiff(before, after), AROUND).flatMap((hunk) => [
    `@@ -${range(hunk, 'before')} +${range(hunk, 'after')} @@`,
    ...hunk.map(({ kind, text }) => `${kind === 'new' ? '+' : kind === 'old' ? '-' : ' '}${text}`),
  ])
  const more = lines.length - MOST_DIFF_LINES
  return [...lines.slice(0, MOST_DIFF_LINES), ...(more > 0 ? [`… ${more} more lines`] : [])].join('\n')
}

function range(hunk: Hunk, side: 'before' | 'after'): string {
  const numbers = hunk.flatMap((line) => line[side] ?? [])
  return numbers.length === 1 ? `${numbers[0]}` : `${numbers[0] ?? 0},${numbers.length}`
}

function tokensOf(parts: readonly Said[]): number {
  return parts.reduce((all, { part }) => all + part.tokens, 0)
}

function byKind(before: readonly Said[], after: readonly Said[]): Record<string, number> {
  const found: Record<string, number> = {}
  for (const [sign, parts] of [[-1, before] as const, [1, after] as const])
    for (const { part } of parts) found[part.kind] = (found[part.kind] ?? 0) + sign * part.tokens
  return Object.fromEntries(Object.entries(found).filter(([, tokens]) => tokens))
}

function sameBytes(one: string, other: string): number {
  const [before, after] = [one, other].map((body) => new TextEncoder().encode(body)) as [Uint8Array, Uint8Array]
  const end = before.findIndex((byte, at) => byte !== after[at])
  return end < 0 ? before.length : end
}
