/** A file with a session: read and checked; and of a share file the answers that the server would give about it. */

import { problem, ProblemError, type Elsewhere, type Values } from '../../api/call.ts'
import type { CallList, CallRecord, SessionExport, SharedSession } from '../../api/schema.ts'
import { isUsageKnown } from '../calls/calls.ts'
import { compareCalls } from './compare.ts'

/** The most that a server takes of an export. */
export const MOST_BYTES = 64 * 2 ** 20
const NEWEST = 1

export type ReadFile = { kind: 'share'; shared: SharedSession } | { kind: 'export'; about: AboutExport }

/** What is told of an export before it is imported. */
export interface AboutExport {
  name: string
  agent: string
  turns: number
  at: string
}

/** Return what a file holds. What is no session of Windowpane is refused with a next step. */
export function readFile(text: string): ReadFile {
  let found: Partial<Record<string, unknown>> | null
  try {
    found = JSON.parse(text) as Partial<Record<string, unknown>> | null
  } catch {
    throw refused('not JSON, or only the beginning of it')
  }
  const { format, version } = found ?? {}
  if (format !== 'windowpane.share' && format !== 'windowpane.session') throw refused('something else')
  if (typeof version === 'number' && version > NEWEST)
    throw new ProblemError(
      problem(
        400,
        'newer_file',
        `A newer Windowpane wrote this file (its format is ${version}, this one reads ${NEWEST}). Update this Windowpane, then open it again.`,
      ),
    )
  if (format === 'windowpane.share') return { kind: 'share', shared: found as unknown as SharedSession }
  return { kind: 'export', about: aboutOf(found as unknown as SessionExport) }
}

function aboutOf({ events, exported_at }: SessionExport): AboutExport {
  const about = { name: '', agent: '', turns: 0, at: Number.isNaN(Date.parse(exported_at)) ? '' : exported_at }
  for (const entry of Array.isArray(events) ? events : []) {
    // What is wrong with it is said by the server.
    const event = (entry as Partial<typeof entry> | null)?.event
    if (!event) continue
    if (event.type === 'session.created') {
      about.name = event.name ?? ''
      about.agent = event.agent
    } else if (event.type === 'session.updated' && 'name' in event.changes) about.name = String(event.changes['name'])
    else if (event.type === 'turn.started') about.turns++
  }
  return about
}

/** Return what answers calls about the session of a file, whose id is told apart from those on the server. */
export function answersOf(file: SharedSession): { id: string; answer: Elsewhere } {
  const id = `shared:${file.session.id}`
  const session = { ...file.session, id, open_turn: null }
  const records = recordsOf(file)
  const answers: Partial<Record<string, (path: Values, query: Values) => unknown>> = {
    read_session: () => session,
    list_messages: () => ({ messages: file.messages, before: null }),
    list_turns: () => ({ turns: [], next: null }),
    xray_session: () => ({ ...file.report, session }),
    get_session_cache: () => file.report.cache,
    list_calls: ({ turn }) => callsOf(file, Number(turn)),
    get_call: ({ turn, number }) =>
      records.filter(({ call }) => call.turn === Number(turn))[Number(number) - 1] ?? missing(),
    get_session_call: ({ number }) => records[Number(number) - 1] ?? missing(),
    compare_calls: ({ number }, query) => {
      const [one, other] = [number, query['with']].map((wanted) => records[Number(wanted) - 1] ?? missing())
      return compareCalls(file, one!, other!)
    },
  }
  return {
    id,
    answer: (operation, { path = {}, query = {} }) => {
      if (path['session_id'] !== id) return undefined
      return answers[operation]?.(path, query) ?? missing()
    },
  }
}

/** Return the calls with their bodies. Each begins as the one before, and then goes on by itself. */
function recordsOf({ calls }: SharedSession): CallRecord[] {
  let before: string[] = []
  return calls.map(({ record, same, text }) => {
    if (text === null) return record
    before = [...before.slice(0, same), ...text]
    return { ...record, body: before.join('') }
  })
}

function callsOf({ report }: SharedSession, turn: number): CallList {
  const own = report.calls.map(({ call }) => call).filter((call) => call.turn === turn)
  const calls = own.map((call, index) => ({ ...call, number: index + 1 }))
  const sum = (of: (usage: CallList['usage']) => number) =>
    calls.reduce((all, { usage }) => all + (usage ? of(usage) : 0), 0)
  const costs = calls.flatMap(({ cost_usd }) => (cost_usd === null ? [] : [Number(cost_usd)]))
  return {
    calls,
    usage: {
      ...report.together.usage,
      input_tokens: sum(({ input_tokens }) => input_tokens),
      output_tokens: sum(({ output_tokens }) => output_tokens),
      cache_read_tokens: sum(({ cache_read_tokens }) => cache_read_tokens),
      cache_write_tokens: sum(({ cache_write_tokens }) => cache_write_tokens),
      cache_write_1h_tokens: sum(({ cache_write_1h_tokens }) => cache_write_1h_tokens),
    },
    cost_usd: costs.length ? String(costs.reduce((all, cost) => all + cost, 0)) : null,
    without_usage: calls.filter((call) => !isUsageKnown(call) && !call.built_in).length,
    without_price: calls.filter((call) => isUsageKnown(call) && call.cost_usd === null).length,
  }
}

function missing(): never {
  throw new ProblemError(problem(404, 'not_in_file', 'This is not in the file.'))
}

function refused(what: string): ProblemError {
  const text = `This is no session of Windowpane: it is ${what}. Take the file that “Export” or “Share as a file” in the menu of a session gives.`
  return new ProblemError(problem(400, 'not_a_session', text))
}
