/** One open session: its state as events change it, and everything that a person can do to it. */

import { SvelteMap } from 'svelte/reactivity'
import { begin, call, ProblemError, said } from '../api/call.ts'
import type {
  AssistantMessage,
  FileBody,
  ItemRefInput,
  SessionSettings,
  ToolCallApproval,
  UserMessage,
  WatchedEvent,
} from '../api/schema.ts'
import {
  apply,
  opened,
  reconnected,
  stillPending,
  undecided,
  withEarlier,
  type Message,
  type OpenTurn,
  type Pending,
  type SessionState,
} from '../context/session.ts'
import { access } from '../auth/me.svelte.ts'
import { randomKey } from '../ui/random.ts'
import { Receipts } from './receipts.svelte.ts'
import { filesOf } from './fork.ts'
import { keepUnsent, unsent } from './unsent.ts'
import { watch, type Connection } from './watch.ts'

const PAGE = 40
const EARLIER_PAGE = 100
/** After these a turn's receipt says something else. */
const TOLD = ['request.built', 'model.replied', 'approval.requested', 'turn.finished']
export type Decision = NonNullable<ToolCallApproval['decision']>

/** Tell whether an id is of a session in a file. */
function isShared(id: string): boolean {
  return id.startsWith('shared:')
}

export class LiveSession {
  readonly id: string
  readonly receipts: Receipts
  /** The turn whose context is looked at; null: the newest. */
  selected: number | null = $state(null)
  /** Null until the session has loaded. */
  state: SessionState | null = $state.raw(null)
  connection: Connection = $state('connecting')
  pending: Pending[] = $state.raw([])
  /** Why the session could not be opened. */
  problem: ProblemError | null = $state.raw(null)
  loadingEarlier = $state(false)
  /** The message that is being written. */
  draft = $state('')
  /** An open turn is only in the events: until they have come, what there is would be shown without its end. */
  catchingUp = $state(false)

  /** What the reader opened or closed in an answer: it stays so when the answer is complete. */
  readonly unfolded = new SvelteMap<string, boolean>()

  readonly messages: Message[] = $derived(this.state?.messages ?? [])
  readonly openTurn: OpenTurn | null = $derived(this.state?.openTurn ?? null)
  readonly waiting = $derived(undecided(this.openTurn))
  /** The turn goes on when the reader has decided about a call, or answered a tool. */
  readonly needsReader = $derived(this.waiting.length > 0 || (this.openTurn?.questions.length ?? 0) > 0)
  /** The newest turn, whether it has ended or not; 0 when there is none. */
  readonly lastTurn = $derived(this.openTurn?.turn ?? this.messages.findLast(({ turn }) => turn !== null)?.turn ?? 0)
  readonly turnShown = $derived(this.selected === null ? this.lastTurn : Math.min(this.selected, this.lastTurn))
  /** From a file: nothing of it is on the server. */
  readonly shared: boolean
  /** Of another program, or from a file: it can be read and not answered. */
  readonly recorded = $derived(this.state?.origin != null || (this.state !== null && isShared(this.state.id)))
  /** It was deleted while it was open. */
  readonly gone = $derived(this.connection === 'gone' || this.state?.deleted === true)
  readonly busy = $derived(this.openTurn !== null || this.pending.some(({ problem }) => problem === null))

  #stop: (() => void) | null = null
  #heard: WatchedEvent[] = []
  #frame = 0
  #closed = false

  constructor(id: string) {
    this.id = id
    this.shared = isShared(id)
    this.receipts = new Receipts(id)
  }

  /** Load the session and watch it until it is closed. */
  async open(): Promise<void> {
    this.problem = null
    try {
      const path = { session_id: this.id }
      const session = await call('read_session', { path })
      const page = await call('list_messages', { path, query: { limit: PAGE } })
      if (this.#closed) return
      this.state = opened(session, page)
      this.catchingUp = session.open_turn !== null
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      this.problem = error
      return
    }
    if (this.shared) return
    this.#stop = watch(this.id, {
      after: () => this.#settled().seq,
      onConnection: (connection) => {
        this.connection = connection
        if (connection === 'offline') this.catchingUp = false
        if (connection === 'locked') void access.look()
      },
      onBegin: () => (this.state = reconnected(this.#settled())),
      onEvent: (event) => this.#hear(event),
    })
    this.#takeUp(unsent(this.id))
  }

  /** Go on with messages that were not sent when the session was opened: those that failed wait for the reader. */
  #takeUp(messages: Pending[]): void {
    const arrived = ({ content, after }: Pending) =>
      this.messages.some((one) => one.role === 'user' && one.content === content && one.seq > (after ?? Infinity))
    const left = messages.filter((message) => !arrived(message))
    this.pending = left
    this.#keep()
    for (const { key, content, files, problem } of left) if (problem === null) void this.send(content, files, key)
  }

  #keep(taken?: string): void {
    keepUnsent(
      this.id,
      this.pending.filter(({ key }) => key !== taken),
    )
  }

  close(): void {
    this.#closed = true
    this.#stop?.()
    cancelAnimationFrame(this.#frame)
    clearTimeout(this.#frame)
  }

  /** Text arrives in many small pieces: they are taken together, once per frame. */
  #hear(event: WatchedEvent): void {
    this.#heard.push(event)
    if (this.#frame) return
    this.#frame =
      document.visibilityState === 'visible'
        ? requestAnimationFrame(() => this.#settled())
        : window.setTimeout(() => this.#settled(), 100)
  }

  #settled(): SessionState {
    this.#frame = 0
    const heard = this.#heard
    this.#heard = []
    const state = heard.reduce(apply, this.state!)
    if (heard.length) {
      this.state = state
      this.pending = stillPending(this.pending, state)
      for (const event of heard) this.#noted(event)
      if (heard.some((event) => event.type === 'session.context' && !('seq' in event))) this.catchingUp = false
    }
    return state
  }

  #noted(event: WatchedEvent): void {
    if (event.type === 'turn.started') this.selected = null
    if (event.type === 'history.cleared') this.receipts.clear()
    if ('turn' in event && event.turn !== null && TOLD.includes(event.type)) this.receipts.refresh(event.turn)
  }

  /** The answer of a turn, asked for where it is not among the messages that were loaded; null while there is none. */
  async answerOf(turn: number): Promise<AssistantMessage | null> {
    const isAnswer = (message: { role: string; turn: number | null }): message is AssistantMessage =>
      message.role === 'assistant' && message.turn === turn
    const here = this.messages.find(isAnswer)
    if (here || this.openTurn?.turn === turn) return here ?? null
    const { messages } = await call('read_turn', { path: { session_id: this.id, turn } })
    return messages.find(isAnswer) ?? null
  }

  async loadEarlier(): Promise<void> {
    const before = this.state?.before
    if (!before || this.loadingEarlier) return
    this.loadingEarlier = true
    try {
      const page = await call('list_messages', {
        path: { session_id: this.id },
        query: { before, limit: EARLIER_PAGE },
      })
      if (this.state) this.state = withEarlier(this.state, page)
    } finally {
      this.loadingEarlier = false
    }
  }

  /** Send a message. It is shown at once, and stays with what went wrong when it could not be taken. */
  async send(content: string, files: FileBody[] = [], key: string = randomKey()): Promise<void> {
    const others = this.pending.filter((one) => one.key !== key)
    const after = this.pending.find((one) => one.key === key)?.after ?? this.state?.seq ?? 0
    this.pending = [...others, { key, content, files, problem: null, after }]
    this.#keep()
    try {
      await begin(
        'send_message',
        { path: { session_id: this.id }, body: files.length ? { content, attachments: files } : { content } },
        { headers: { 'Idempotency-Key': key } },
      )
      this.#keep(key)
    } catch (error) {
      this.pending = this.pending.map((one) => (one.key === key ? { ...one, problem: said(error) } : one))
      this.#keep()
    }
  }

  /** Send a message once more, with its files. */
  async sendAgain({ content, attachments }: UserMessage): Promise<void> {
    await this.send(content, await filesOf(this.id, attachments))
  }

  dismiss(key: string): void {
    this.pending = this.pending.filter((one) => one.key !== key)
    this.#keep()
  }

  async decide(decisions: Record<string, Decision>): Promise<void> {
    await begin('decide', { path: { session_id: this.id }, body: { decisions } })
  }

  async answer(
    question_id: string,
    action: 'accept' | 'decline' | 'cancel',
    content: Record<string, unknown> | null,
  ): Promise<void> {
    await call('answer_question', { path: { session_id: this.id }, body: { question_id, action, content } })
  }

  async stop(): Promise<void> {
    await call('cancel_turn', { path: { session_id: this.id } })
  }

  async rename(name: string): Promise<void> {
    await call('update_session', { path: { session_id: this.id }, body: { name } })
  }

  async change(settings: Partial<SessionSettings>): Promise<void> {
    await call('update_session', { path: { session_id: this.id }, body: { settings } })
  }

  /** Let another agent answer from now on. */
  async giveAgent(agent: string): Promise<void> {
    await call('update_session', { path: { session_id: this.id }, body: { agent } })
  }

  async addItem(ref: ItemRefInput): Promise<void> {
    await call('add_session_item', { path: { session_id: this.id }, body: ref })
  }

  async removeItem({ type, name, server }: ItemRefInput): Promise<void> {
    const query = server ? { server } : {}
    await call('remove_session_item', { path: { session_id: this.id, type, name }, query })
  }

  /** Make a reference of this session from a file. */
  async addReference(file: FileBody): Promise<void> {
    await call('add_own_reference', { path: { session_id: this.id }, body: file })
  }

  /** Take such a reference out; return what still keeps its words. */
  async removeReference(name: string): Promise<string[]> {
    return (await call('remove_own_reference', { path: { session_id: this.id, name } })).remains
  }

  /** Never use an item in this session; `readmitItem` takes it back. */
  async excludeItem(ref: ItemRefInput): Promise<void> {
    await call('exclude_session_item', { path: { session_id: this.id }, body: ref })
  }

  async readmitItem({ type, name, server }: ItemRefInput): Promise<void> {
    const query = server ? { server } : {}
    await call('readmit_session_item', { path: { session_id: this.id, type, name }, query })
  }
}
