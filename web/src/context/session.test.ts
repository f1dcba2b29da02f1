import { describe, expect, test } from 'vitest'
import type { MessagePage, SessionView, Step, UserMessage, WatchedEvent } from '../api/schema.ts'
import {
  apply,
  holds,
  isOwn,
  keyOf,
  opened,
  reconnected,
  stillPending,
  undecided,
  withEarlier,
  type SessionState,
} from './session.ts'

const AT = '2026-01-02T03:04:05Z'
const SETTINGS = { model: null, mode: null } as unknown as SessionView['settings']
const SESSION = {
  id: 'ses_1',
  seq: 3,
  agent: 'pane',
  name: 'Photos',
  settings: SETTINGS,
  items: [{ ref: { type: 'rule', name: 'tone', server: null }, mode: 'always' }],
  excluded: [],
  own_references: [],
  context: { files: ['/a.md'] },
  summary: null,
  open_turn: null,
} as unknown as SessionView
const EMPTY: MessagePage = { messages: [], before: null }
const CALL = { id: 'call_1', offered_name: 'notes__read', arguments: '{}', ref: null }

function step(text: string, more: Partial<Step> = {}): Step {
  const usage = {
    input_tokens: 0,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
  }
  return {
    text,
    thinking: '',
    tool_calls: [],
    results: [],
    usage,
    model: '',
    finish_reason: '',
    latency_ms: 0,
    ...more,
  }
}

function after(events: object[], start: SessionState = opened(SESSION, EMPTY)): SessionState {
  return (events as WatchedEvent[]).reduce(apply, start)
}

const started = (seq: number, turn = 1, key: string | null = null) => ({
  seq,
  at: AT,
  type: 'turn.started',
  turn,
  message: 'Hello',
  key,
  tokens: 1,
  resumed: false,
  attachments: [],
})
const replied = (seq: number, text: string, more: Partial<Step> = {}) => ({
  seq,
  at: AT,
  type: 'model.replied',
  turn: 1,
  step: step(text, more),
  tokens: 1,
})
const finished = (seq: number, more: object = {}) => ({
  seq,
  at: AT,
  type: 'turn.finished',
  turn: 1,
  outcome: 'completed',
  error: null,
  sources: [],
  related: [],
  ...more,
})
const delta = (text: string) => ({ type: 'reply.delta', turn: 1, text, kind: 'text' })

describe('a turn', () => {
  test('grows while it is said, and becomes a message when it has ended', () => {
    const speaking = after([started(4), delta('Hel'), delta('lo')])
    const ended = after([replied(5, 'Hello'), finished(6)], speaking)

    expect(speaking.openTurn?.saying).toEqual({ text: 'Hello', thinking: '' })
    expect(ended.openTurn).toBeNull()
    expect(ended.messages.map(({ role, seq }) => [role, seq])).toEqual([
      ['user', 4],
      ['assistant', 6],
    ])
    expect(ended.seq).toBe(6)
  })

  test('that fails after it has said something leaves both, told apart', () => {
    const error = { code: 'model_unavailable', message: 'Try later.', partial: 'Hel' }
    const ended = after([started(4), replied(5, 'First'), finished(6, { outcome: 'failed', error })])

    expect(ended.messages.map(keyOf)).toEqual(['4-user', '6-assistant', '6-error'])
    expect(ended.messages.at(-1)).toMatchObject({ content: 'Try later.', partial: 'Hel' })
  })

  test('waits until every call is decided, and the decisions are a message', () => {
    const other = { ...CALL, id: 'call_2' }
    const asked = after([
      started(4),
      replied(5, '', { tool_calls: [CALL, other] }),
      { seq: 6, at: AT, type: 'approval.requested', turn: 1, calls: [CALL, other] },
    ])
    const half = after(
      [{ seq: 7, at: AT, type: 'approval.decided', turn: 1, decisions: { call_1: 'deny' }, actor: 'user' }],
      asked,
    )
    const whole = after(
      [
        {
          seq: 8,
          at: AT,
          type: 'approval.decided',
          turn: 1,
          decisions: { call_2: 'allow_once', call_1: 'allow_once' },
          actor: 'user',
        },
      ],
      half,
    )

    expect(undecided(asked.openTurn).map(({ id }) => id)).toEqual(['call_1', 'call_2'])
    expect(undecided(half.openTurn).map(({ id }) => id)).toEqual(['call_2'])
    expect(whole.messages.at(-1)).toMatchObject({
      role: 'approval',
      tool_call_approvals: [{ decision: 'deny' }, { decision: 'allow_once' }],
    })
  })

  test('takes the result of a call once', () => {
    const result = { call_id: 'call_1', content: 'x', is_error: false, latency_ms: 1, attachments: [] }
    const returned = (seq: number) => ({ seq, at: AT, type: 'tool.returned', turn: 1, result })
    const state = after([started(4), replied(5, '', { tool_calls: [CALL] }), returned(6), returned(7)])

    expect(state.openTurn?.steps[0]?.results).toEqual([result])
  })
})

describe('a connection that was lost', () => {
  test('changes nothing when it tells again what was told', () => {
    const events = [started(4), replied(5, 'Hello'), finished(6)]

    expect(after(events, after(events))).toEqual(after(events))
  })

  test('begins unfinished text again', () => {
    const again = after([delta('Hello')], reconnected(after([started(4), delta('Hel')])))

    expect(again.openTurn?.saying.text).toBe('Hello')
    expect(after([{ type: 'missed', after: 4 }], again).openTurn?.saying.text).toBe('')
  })
})

describe('opening', () => {
  const user: UserMessage = { role: 'user', content: 'Hello', attachments: [], turn: 1, seq: 2, at: AT }

  test('goes on after the session as it was read, and leaves what came since to the events', () => {
    const page = { messages: [user, { ...user, seq: 9, turn: 2 }], before: null }

    expect(opened(SESSION, page)).toMatchObject({ seq: 3, messages: [user], sets: { files: ['/a.md'] } })
  })

  test('of a session with an open turn begins before that turn', () => {
    const open = {
      ...SESSION,
      open_turn: { turn: 1, state: 'running', request: null, approvals: [], questions: [] },
    } as SessionView

    expect(opened(open, { messages: [user], before: null })).toMatchObject({ seq: 1, messages: [] })
  })

  test('puts earlier messages before the others, each once', () => {
    const state = opened(SESSION, { messages: [user], before: 2 })
    const earlier = { ...user, seq: 1 }

    expect(withEarlier(state, { messages: [earlier, user], before: null })).toMatchObject({
      messages: [earlier, user],
      before: null,
    })
  })
})

test('a message that was sent is pending until the log has it', () => {
  const pending = [{ key: 'k', content: 'Hello', files: [], problem: null }]

  expect(stillPending(pending, after([]))).toBe(pending)
  expect(stillPending(pending, after([started(4, 1, 'k')]))).toEqual([])
})

test('items, settings, the name and the working context follow their events', () => {
  const ref = { type: 'tool', name: 'read', server: 'notes' } as const
  const state = after([
    { seq: 4, at: AT, type: 'item.added', item: { ref, mode: 'manual' }, actor: 'user' },
    { seq: 5, at: AT, type: 'item.removed', ref: { type: 'rule', name: 'tone' }, actor: 'user' },
    { seq: 6, at: AT, type: 'session.updated', changes: { name: null, mode: 'thinking' }, actor: 'user' },
    {
      seq: 7,
      at: AT,
      type: 'session.context',
      data: { reason: 'changed', context: { ports: ['80'] }, setName: 'ports' },
    },
  ])

  expect(state.items).toEqual([{ ref, mode: 'manual' }])
  expect(state.excluded).toEqual([{ type: 'rule', name: 'tone' }])
  expect(holds(state, ref)).toBe(true)
  expect([state.name, state.settings.mode, state.sets]).toEqual(['', 'thinking', { ports: ['80'] }])
})

test('erasing the conversation leaves no message, and a deleted session no turn', () => {
  const cleared = after([started(4), { seq: 5, at: AT, type: 'history.cleared', turns: 1, actor: 'user' }])

  expect([cleared.messages, cleared.openTurn]).toEqual([[], null])
  expect(after([{ type: 'session.deleted' }]).deleted).toBe(true)
})

test('an event of a newer server is passed over', () => {
  expect(after([{ seq: 4, at: AT, type: 'something.new' }])).toEqual({ ...after([]), seq: 4 })
})

test('a message that was taken back is gone', () => {
  const said = (seq: number, content: string) => ({
    seq,
    at: AT,
    type: 'message.added',
    role: 'user',
    content,
    attachments: [],
  })
  const state = after([
    said(4, 'One'),
    said(5, 'Two'),
    { seq: 6, at: AT, type: 'message.removed', removed: 4, tokens: 1 },
  ])

  expect([state.seq, state.messages.map(({ seq }) => seq)]).toEqual([6, [5]])
})

test('an item that is excluded stays out, also when its server arrives, until it is readmitted or added', () => {
  const ref = { type: 'tool', name: 'read', server: 'notes' } as const
  const removed = { seq: 4, at: AT, type: 'item.removed', ref, actor: 'user' }
  const arrived = { seq: 5, at: AT, type: 'server.arrived', server: 'notes', items: [{ ref, mode: 'always' }] }
  const kept = after([removed, arrived])

  expect([holds(kept, ref), kept.excluded]).toEqual([false, [ref]])
  expect(after([{ seq: 6, at: AT, type: 'item.readmitted', ref, actor: 'user' }], kept).excluded).toEqual([])
  expect(
    after([{ seq: 6, at: AT, type: 'item.added', item: { ref, mode: 'manual' }, actor: 'user' }], kept).excluded,
  ).toEqual([])
})

test('a reference that was made from a file is known, and leaves the session when it is removed', () => {
  const ref = { type: 'reference', name: 'zoo', server: null } as const
  const reference = { name: 'zoo', file: 'zoo.md', blob: 'b', characters: 9, origin: 'this session' }
  const held = after([
    { seq: 4, at: AT, type: 'reference.added', reference, actor: 'user' },
    { seq: 5, at: AT, type: 'item.added', item: { ref, mode: 'manual' }, actor: 'user' },
  ])
  const gone = after([{ seq: 6, at: AT, type: 'reference.removed', name: 'zoo', actor: 'user' }], held)

  expect([holds(held, ref), held.ownReferences, isOwn(held, ref)]).toEqual([true, [reference], true])
  expect([holds(gone, ref), gone.ownReferences, isOwn(gone, ref)]).toEqual([false, [], false])
})
