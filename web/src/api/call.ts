/** Calls of the server's operations. What fails is a `ProblemError`, whose message says what to do next. */

import { ROOT } from './root.ts'
import { OPERATIONS, type Operations, type ProblemDocument } from './schema.ts'

export type Operation = keyof Operations

type Given<O extends Operation> = Part<'path', Operations[O]['path']> &
  (Record<string, never> extends Operations[O]['query']
    ? { query?: Operations[O]['query'] }
    : { query: Operations[O]['query'] }) &
  (undefined extends Operations[O]['body'] ? { body?: Operations[O]['body'] } : { body: Operations[O]['body'] })
type Part<Name extends string, Values> = Values extends Record<string, never> ? object : { [name in Name]: Values }

interface Options {
  signal?: AbortSignal
  /** Let the request end even when the page is closed meanwhile. */
  keepalive?: boolean
  headers?: Record<string, string>
  /** The body as it is, in place of the one that would be written as JSON. */
  text?: string
}

export class ProblemError extends Error {
  readonly problem: ProblemDocument

  constructor(problem: ProblemDocument) {
    super(problem.detail)
    this.name = 'ProblemError'
    this.problem = problem
  }

  get code(): string {
    return this.problem.code
  }
}

let onLocked = (): void => {}

/** Do this whenever the server refuses the token. */
export function whenLocked(run: () => void): void {
  onLocked = run
}

/** Answers some calls in place of the server; undefined: the server answers. */
export type Elsewhere = (operation: Operation, given: { path?: Values; query?: Values }) => unknown

let elsewhere: Elsewhere = () => undefined

/** Let calls about a shared file be answered from it. */
export function answerFrom(source: Elsewhere): void {
  elsewhere = source
}

/** Call an operation: `await call('read_session', { path: { session_id } })`. */
export async function call<O extends Operation>(
  operation: O,
  given: Given<O>,
  options: Options = {},
): Promise<Operations[O]['answer']> {
  const found = elsewhere(operation, given)
  if (found !== undefined) return found as Operations[O]['answer']
  const response = await request(operation, given, options)
  return (response.status === 204 ? undefined : await response.json()) as Operations[O]['answer']
}

/** Call an operation and return as soon as it has begun; for turns, which are watched over the session's events. */
export async function begin<O extends Operation>(operation: O, given: Given<O>, options: Options = {}): Promise<void> {
  const headers = { ...options.headers, Accept: 'text/event-stream' }
  const response = await request(operation, given, { ...options, headers })
  await response.body?.cancel()
}

async function request<O extends Operation>(operation: O, given: Given<O>, options: Options): Promise<Response> {
  const { path = {}, query = {}, body } = given as { path?: Values; query?: Values; body?: unknown }
  const [method, pattern] = OPERATIONS[operation]
  let response: Response
  try {
    response = await fetch(address(pattern, path, query), {
      method,
      ...(body === undefined ? {} : { body: options.text ?? JSON.stringify(body) }),
      headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...options.headers },
      ...(options.signal ? { signal: options.signal } : {}),
      ...(options.keepalive ? { keepalive: true } : {}),
    })
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new ProblemError(unreachable())
  }
  if (response.ok) return response
  if (response.status === 401 && operation !== 'log_in') onLocked()
  throw new ProblemError(await problemIn(response))
}

export type Values = Record<string, string | number | boolean | null | undefined>

export function address(pattern: string, path: Values = {}, query: Values = {}): string {
  const place = pattern.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])))
  const asked = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const search = new URLSearchParams(asked.map(([name, value]) => [name, String(value)])).toString()
  return ROOT + (search ? `${place}?${search}` : place)
}

async function problemIn(response: Response): Promise<ProblemDocument> {
  try {
    if (response.headers.get('content-type')?.includes('json')) return (await response.json()) as ProblemDocument
  } catch {
    // A body that is cut off is as good as none.
  }
  return problem(response.status, 'unexpected_answer', `The server answered ${response.status}. Try again in a moment.`)
}

function unreachable(): ProblemDocument {
  return problem(0, 'unreachable', 'Server unreachable. Check that `windowpane serve` is running, then try again.')
}

export function problem(status: number, code: string, detail: string): ProblemDocument {
  return { type: `urn:windowpane:problem:${code}`, title: '', status, detail, code, facts: {}, errors: [] }
}

/** What went wrong, in words for people. */
export function said(error: unknown): string {
  return sentence(error instanceof Error ? error.message : String(error))
}

/** A text with a capital letter at its beginning, unless it begins with a name such as `openai:gpt-4o` or `a.json`. */
function sentence(text: string): string {
  return /^\p{Ll}+(?=[\s,;'’]|$)/u.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text
}
