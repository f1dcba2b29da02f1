/** A share file: read and checked, and the answers that the server would give about its session. */

import { problem, ProblemError, type Elsewhere, type Values } from '../../api/call.ts'
import type { CallList, CallRecord, SharedSession } from '../../api/schema.ts'

/** Return the session that a file holds. What is not a share file is refused with a next step. */
export function readShared(text: string): SharedSession {
  let found: Partial<SharedSession> | null = null
  try {
    found = JSON.parse(text) as Partial<SharedSession> | null
  } catch {
    // What it is instead is said below.
  }
  if (found?.format === 'windowpane.share' && found.version === 1) return found as SharedSession
  if ((found?.format as string | undefined) === 'windowpane.session')
    throw refused('This is an export. Import it with `windowpane import FILE`, or ask for a share file instead.')
  throw refused('This is not a share file. `windowpane share SESSION` makes one.')
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
    compare_calls: ({ number }, query) =>
      file.comparisons.find(({ before, after }) => before.number === number && after.number === query['with']) ??
      missing('In a file, only calls that follow one another can be compared.'),
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
    },
    cost_usd: costs.length ? String(costs.reduce((all, cost) => all + cost, 0)) : null,
    without_usage: calls.filter(({ usage }) => usage === null).length,
    without_price: calls.filter(({ usage, cost_usd }) => usage !== null && cost_usd === null).length,
  }
}

function missing(text = 'This is not in the file.'): never {
  throw new ProblemError(problem(404, 'not_in_file', text))
}

function refused(text: string): ProblemError {
  return new ProblemError(problem(400, 'not_a_share_file', text))
}
