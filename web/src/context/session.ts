/**
 * The session as the page shows it: a pure fold over its events, after `context/session.py`.
 *
 * It begins with what the server says the session is (`opened`) and goes on with events (`apply`). Events that were
 * seen already change nothing, so a reconnect may repeat them.
 */

import type {
  FileBody,
  ApprovalMessage,
  AssistantMessage,
  Branch,
  ErrorMessage,
  ItemRef,
  MessagePage,
  Origin,
  OwnReference,
  SessionContextEvent,
  SessionItem,
  SessionSettings,
  SessionView,
  Step,
  StoredEvent,
  Summary,
  SystemMessage,
  ToolCall,
  ToolQuestion,
  ToolCallApproval,
  ToolProgressEvent,
  UserMessage,
  WatchedEvent,
} from '../api/schema.ts'

/** The working context: names, and what each stands for. */
export type ContextSets = SessionContextEvent['data']['context']

export type Message = UserMessage | SystemMessage | ErrorMessage | ApprovalMessage | AssistantMessage

/** A turn that has not finished. `saying` is the part of the next step that has arrived so far. */
export type OpenTurn = {
  turn: number
  message: string
  request: string | null
  steps: Step[]
  approvals: ToolCallApproval[]
  /** What a running tool asks. */
  questions: ToolQuestion[]
  /** How far the running tool has come, as it last told; null when it tells nothing. */
  progress: ToolProgressEvent | null
  cancelRequested: boolean
  saying: { text: string; thinking: string }
}

export type SessionState = {
  id: string
  seq: number
  agent: string
  name: string
  /** How the conversation began when it was opened, for a session without a name. */
  title: string
  settings: SessionSettings
  items: SessionItem[]
  /** Items that were removed or excluded by hand: they are not selected. */
  excluded: ItemRef[]
  /** References that were made from files, for this session alone. */
  ownReferences: OwnReference[]
  sets: ContextSets
  messages: Message[]
  /** Asks for the messages before the first one here; null when there are none. */
  before: number | null
  openTurn: OpenTurn | null
  /** The idempotency keys of turns that were started while the page watched. */
  keys: string[]
  /** How often fetched context has changed; a view of it reads it again then. */
  fetchedChanges: number
  summary: Summary | null
  /** Where a branch began; null for a session that is none. */
  branchOf: Branch | null
  /** The program whose calls were recorded; null for a session of an agent. */
  origin: Origin | null
  deleted: boolean
}

const SILENCE = { text: '', thinking: '' }
const KEYS = 64

/**
 * Return the state to go on from, and after which sequence number to watch.
 *
 * `page` must have been read after `session`. What happened since the session was read comes again as events, and so
 * does a turn that is still open, from its beginning: its steps are only there.
 */
export function opened(session: SessionView, page: MessagePage): SessionState {
  const open = session.open_turn
  const start = open && page.messages.find((message) => message.role === 'user' && message.turn === open.turn)
  const seq = start ? start.seq - 1 : session.seq
  return {
    id: session.id,
    seq,
    agent: session.agent,
    name: session.name,
    title: session.title,
    settings: session.settings,
    items: session.items,
    excluded: session.excluded,
    ownReferences: session.own_references,
    sets: session.context,
    messages: page.messages.filter((message) => message.seq <= seq),
    before: page.before,
    openTurn: null,
    keys: [],
    fetchedChanges: 0,
    summary: session.summary,
    branchOf: session.branch_of ?? null,
    origin: session.origin ?? null,
    deleted: false,
  }
}

/** Return the state with older messages before the ones it has. */
export function withEarlier(state: SessionState, page: MessagePage): SessionState {
  const first = state.messages[0]?.seq ?? Infinity
  const earlier = page.messages.filter((message) => message.seq < first)
  return { ...state, messages: [...earlier, ...state.messages], before: page.before }
}

/** Return the state when a stream begins again: text on its way will be told again from its beginning. */
export function reconnected(state: SessionState): SessionState {
  return withOpen(state, state.openTurn?.turn ?? 0, { saying: SILENCE })
}

/** Return the state after one more thing was heard. */
export function apply(state: SessionState, event: WatchedEvent): SessionState {
  if (inLog(event)) {
    if (event.seq <= state.seq) return state
    return { ...meaning(state, event), seq: event.seq }
  }
  switch (event.type) {
    case 'reply.delta': {
      const turn = state.openTurn
      if (turn?.turn !== event.turn) return state
      const saying = { ...turn.saying, [event.kind]: turn.saying[event.kind] + event.text }
      return { ...state, openTurn: { ...turn, saying } }
    }
    case 'tool.progress':
      return withOpen(state, event.turn, { progress: event })
    case 'session.context':
      return { ...state, sets: event.data.context }
    case 'missed':
      return reconnected(state)
    case 'session.deleted':
      return { ...state, deleted: true, openTurn: null }
  }
}

/** An event in its place in the log. */
type Logged = StoredEvent & { seq: number; at: string }

/** The context as it is after loading has no place in the log. */
function inLog(event: WatchedEvent): event is Logged {
  return 'seq' in event
}

function meaning(state: SessionState, event: Logged): SessionState {
  const { seq, at } = event
  switch (event.type) {
    case 'session.updated': {
      const { name, ...settings } = event.changes as Partial<SessionSettings> & { name?: string | null }
      const named = name === undefined ? state.name : (name ?? '')
      return { ...state, name: named, settings: { ...state.settings, ...settings } }
    }
    case 'session.agent':
      return { ...state, agent: event.agent, items: event.items }
    case 'item.added':
      return holds(state, event.item.ref)
        ? state
        : { ...state, items: [...state.items, event.item], excluded: without(state.excluded, event.item.ref) }
    case 'item.removed':
      return {
        ...state,
        items: state.items.filter((item) => !same(item.ref, event.ref)),
        excluded: [...without(state.excluded, event.ref), event.ref],
      }
    case 'item.readmitted':
      return { ...state, excluded: without(state.excluded, event.ref) }
    case 'reference.added':
      return { ...state, ownReferences: [...withoutOwn(state, event.reference.name), event.reference] }
    case 'reference.removed': {
      const ref = { type: 'reference' as const, name: event.name, server: null }
      return {
        ...state,
        items: state.items.filter((item) => !same(item.ref, ref)),
        excluded: without(state.excluded, ref),
        ownReferences: withoutOwn(state, event.name),
      }
    }
    case 'server.arrived':
      return {
        ...state,
        items: [
          ...state.items,
          ...event.items.filter(({ ref }) => !holds(state, ref) && !state.excluded.some((one) => same(one, ref))),
        ],
      }
    case 'message.added':
      return withMessage(state, added(event))
    case 'message.removed':
      return { ...state, messages: state.messages.filter((message) => message.seq !== event.removed) }
    case 'turn.started': {
      const { message: content, attachments, turn } = event
      const message: UserMessage = { role: 'user', content, attachments, turn, seq, at }
      return {
        ...withMessage(state, message),
        keys: event.key ? [...state.keys, event.key].slice(-KEYS) : state.keys,
        openTurn: {
          turn: event.turn,
          message: event.message,
          request: null,
          steps: [],
          approvals: [],
          questions: [],
          progress: null,
          cancelRequested: false,
          saying: SILENCE,
        },
      }
    }
    case 'request.built':
      return withOpen(state, event.turn, { request: event.request })
    case 'model.replied': {
      const steps = [...(state.openTurn?.steps ?? []), event.step]
      return withOpen(state, event.turn, { steps, approvals: [], saying: SILENCE })
    }
    case 'tool.returned': {
      const steps = state.openTurn?.steps ?? []
      const last = steps.at(-1)
      if (!last || last.results.some((result) => result.call_id === event.result.call_id)) return state
      const answered = { ...last, results: [...last.results, event.result] }
      const questions = (state.openTurn?.questions ?? []).filter(({ call_id }) => call_id !== event.result.call_id)
      return withOpen(state, event.turn, { steps: [...steps.slice(0, -1), answered], questions, progress: null })
    }
    case 'approval.requested':
      return withOpen(state, event.turn, {
        approvals: event.calls.map((call) => ({ call, decision: null, by: 'user' })),
      })
    case 'approval.decided': {
      if (state.openTurn?.turn !== event.turn) return state
      const approvals = state.openTurn.approvals.map((approval) => {
        const decision = event.decisions[approval.call.id]
        return approval.decision || !decision ? approval : { ...approval, decision, by: event.actor }
      })
      const decided = withOpen(state, event.turn, { approvals })
      if (approvals.some(({ decision }) => decision === null)) return decided
      return withMessage(decided, { role: 'approval', tool_call_approvals: approvals, turn: event.turn, seq, at })
    }
    case 'question.asked':
      return withOpen(state, event.turn, { questions: [...(state.openTurn?.questions ?? []), event.question] })
    case 'question.answered':
      return withOpen(state, event.turn, {
        questions: (state.openTurn?.questions ?? []).filter(({ id }) => id !== event.question_id),
      })
    case 'cancel.requested':
      return withOpen(state, event.turn, { cancelRequested: true })
    case 'turn.finished': {
      const turn = state.openTurn
      if (turn?.turn !== event.turn) return state
      let after: SessionState = { ...state, openTurn: null }
      if (turn.steps.length) {
        const { outcome, sources, related } = event
        const model_reply = { steps: turn.steps }
        const request = turn.request
        after = withMessage(after, {
          role: 'assistant',
          model_reply,
          request,
          outcome,
          sources,
          related,
          turn: event.turn,
          seq,
          at,
        })
      }
      if (event.error) {
        const { message: content, code, partial } = event.error
        after = withMessage(after, {
          role: 'error',
          content,
          code,
          partial,
          request: turn.request,
          turn: event.turn,
          seq,
          at,
        })
      }
      return after
    }
    case 'summary.made':
      return { ...state, summary: event.summary }
    case 'fetched.added':
    case 'fetched.cleared':
      return { ...state, fetchedChanges: state.fetchedChanges + 1 }
    case 'session.context':
      return { ...state, sets: event.data.context }
    case 'history.cleared':
      return { ...state, messages: [], before: null, openTurn: null, summary: null }
    case 'session.created':
    case 'erased':
      return state
    default:
      // A newer server may tell of things that this page does not know.
      return state
  }
}

function added(event: Logged & { type: 'message.added' }): Message {
  const { role, content, attachments, seq, at } = event
  if (role === 'user') return { role, content, attachments, turn: null, seq, at }
  if (role === 'system') return { role, content, turn: null, seq, at }
  const step: Step = {
    text: content,
    thinking: '',
    tool_calls: [],
    results: [],
    usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, cache_write_1h_tokens: 0 },
    model: '',
    finish_reason: '',
    latency_ms: 0,
  }
  const outcome = 'completed'
  return { role, model_reply: { steps: [step] }, request: null, outcome, sources: [], related: [], turn: null, seq, at }
}

function withMessage(state: SessionState, message: Message): SessionState {
  return { ...state, messages: [...state.messages, message] }
}

function withOpen(state: SessionState, turn: number, changes: Partial<OpenTurn>): SessionState {
  if (state.openTurn?.turn !== turn) return state
  return { ...state, openTurn: { ...state.openTurn, ...changes } }
}

export function holds(state: Pick<SessionState, 'items'>, ref: ItemRef): boolean {
  return state.items.some((item) => same(item.ref, ref))
}

function without(refs: readonly ItemRef[], ref: ItemRef): ItemRef[] {
  return refs.filter((one) => !same(one, ref))
}

function withoutOwn(state: SessionState, name: string): OwnReference[] {
  return state.ownReferences.filter((own) => own.name !== name)
}

/** Tell whether an item is a reference that the session made from a file. */
export function isOwn(state: Pick<SessionState, 'ownReferences'>, ref: ItemRef): boolean {
  return ref.type === 'reference' && state.ownReferences.some(({ name }) => name === ref.name)
}

export function same(one: ItemRef, other: ItemRef): boolean {
  return one.type === other.type && one.name === other.name && (one.server ?? null) === (other.server ?? null)
}

/** Return the calls that still wait for a person. */
export function undecided(turn: OpenTurn | null): ToolCall[] {
  return (turn?.approvals ?? []).filter(({ decision }) => decision === null).map(({ call }) => call)
}

/** A message that is not in the log yet, or could not be put there. */
export type Pending = {
  key: string
  content: string
  files: FileBody[]
  problem: string | null
  /** How far the log had come when it was first sent. */
  after?: number
}

/** Return the messages that the log does not have yet. */
export function stillPending(pending: Pending[], state: SessionState): Pending[] {
  const left = pending.filter(({ key }) => !state.keys.includes(key))
  return left.length === pending.length ? pending : left
}

/** Tell one message of a list from the others; a failed turn can end in two with one sequence number. */
export function keyOf(message: Message): string {
  return `${message.seq}-${message.role}`
}

/** What a person decided about tool calls, by turn and call. */
export function decisionsOf(
  messages: readonly Message[],
): Record<number, Record<string, NonNullable<ToolCallApproval['decision']>>> {
  const found: ReturnType<typeof decisionsOf> = {}
  for (const message of messages) {
    if (message.role !== 'approval' || message.turn === null) continue
    for (const { call, decision } of message.tool_call_approvals) {
      if (decision) (found[message.turn] ??= {})[call.id] = decision
    }
  }
  return found
}

/** Return the messages without decisions that stand beside their calls: those of turns that have an answer or are open. */
export function withoutDecided(messages: readonly Message[], open: number | null): Message[] {
  const answered = new Set(messages.filter(({ role }) => role === 'assistant').map(({ turn }) => turn))
  return messages.filter(({ role, turn }) => role !== 'approval' || !(answered.has(turn) || turn === open))
}
