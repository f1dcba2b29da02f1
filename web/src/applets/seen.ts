/** What the agent last saw of a file: the text that a tool gave it, or that it gave a tool, for that path. */

import type { Step } from '../api/schema.ts'
import type { Message, OpenTurn } from '../context/session.ts'

export type Seen = { text: string; tool: string; turn: number | null }

/** A text that shares fewer of its lines with the file is taken for something else, such as "saved". */
const LEAST_SHARE = 0.3
const LINE_NUMBER = /^\s*\d+(\t|→|: |\| ?)/

/** Return the last of them that reads like the file; null when the agent has not seen it in these messages. */
export function lastSeen(messages: readonly Message[], open: OpenTurn | null, path: string, now: string): Seen | null {
  const lines = new Set(now.split('\n'))
  const turns: { turn: number | null; steps: Step[] }[] = messages.flatMap((message) =>
    message.role === 'assistant' ? [{ turn: message.turn, steps: message.model_reply.steps }] : [],
  )
  if (open) turns.push({ turn: open.turn, steps: open.steps })
  for (const { turn, steps } of turns.toReversed()) {
    for (const step of steps.toReversed()) {
      for (const call of step.tool_calls.toReversed()) {
        const given = strings(call.arguments)
        if (!given.includes(path)) continue
        const result = step.results.find(({ call_id }) => call_id === call.id)
        if (!result || result.is_error) continue
        const texts = [result.content, ...given.filter((text) => text !== path)].map(withoutNumbers)
        const best = texts
          .map((text) => ({ text, share: share(text, lines) }))
          .sort((one, other) => other.share - one.share || other.text.length - one.text.length)[0]
        if (best && (best.share >= LEAST_SHARE || best.text.includes('\n')))
          return { text: best.text, tool: call.ref?.name ?? call.offered_name, turn }
      }
    }
  }
  return null
}

/** Every text in the arguments of a call, which are JSON as the model wrote it. */
function strings(json: string): string[] {
  try {
    return found(JSON.parse(json))
  } catch {
    return []
  }
}

function found(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return value && typeof value === 'object' ? Object.values(value).flatMap(found) : []
}

function share(text: string, lines: ReadonlySet<string>): number {
  const written = text.split('\n').filter((line) => line.trim())
  return written.length ? written.filter((line) => lines.has(line)).length / written.length : 0
}

function withoutNumbers(text: string): string {
  const lines = text.split('\n')
  const written = lines.filter((line) => line.trim())
  return written.length && written.every((line) => LINE_NUMBER.test(line))
    ? lines.map((line) => line.replace(LINE_NUMBER, '')).join('\n')
    : text
}
