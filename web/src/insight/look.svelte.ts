/** One turn as it is looked at: its context, its answer and its receipt, from the moment its request is stored. */

import { untrack } from 'svelte'
import { agents } from '../agents/items.svelte.ts'
import { call, ProblemError, said } from '../api/call.ts'
import type { AssistantMessage, RequestContext, Step, TurnReceipt } from '../api/schema.ts'
import type { OpenTurn } from '../context/session.ts'
import type { LiveSession } from '../live/session.svelte.ts'

/** A reader who walks through turns does not stay at each: the next one is asked for after so long. */
const PAUSE_MS = 120

interface Seen {
  turn: number
  context: RequestContext
  answer: AssistantMessage | null
}

/** Made by a component, for as long as it is shown. What was read stays in sight while it is read again. */
export class TurnLook {
  readonly #session: LiveSession
  readonly #turn: () => number
  #read: Seen | null = $state.raw(null)
  #failed: { turn: number; absent: boolean; text: string } | null = $state.raw(null)
  #attempt = $state(0)

  readonly open: OpenTurn | null = $derived.by(() => {
    const { openTurn } = this.#session
    return openTurn?.turn === this.#turn() ? openTurn : null
  })
  readonly stored: boolean = $derived(this.open === null || this.open.request !== null)
  readonly seen: Seen | null = $derived.by(() => (this.#read?.turn === this.#turn() ? this.#read : null))
  readonly problem = $derived.by(() => (this.#failed?.turn === this.#turn() ? this.#failed : null))
  readonly receipt: TurnReceipt | null = $derived.by(() => this.#session.receipts.get(this.#turn()))
  readonly steps: readonly Step[] = $derived(this.open?.steps ?? this.seen?.answer?.model_reply.steps ?? [])

  constructor(session: LiveSession, turn: () => number) {
    this.#session = session
    this.#turn = turn
    $effect(() => {
      void [this.#attempt, this.open === null]
      const number = turn()
      if (!number || !this.stored) return
      let wanting = true
      const pause = untrack(() => (this.#read && this.#read.turn !== number ? PAUSE_MS : 0))
      const timer = setTimeout(() => {
        look(session, number).then(
          (found) => wanting && ((this.#read = found), (this.#failed = null)),
          (error: unknown) => wanting && (this.#failed = { turn: number, absent: isAbsent(error), text: said(error) }),
        )
      }, pause)
      return () => ((wanting = false), clearTimeout(timer))
    })
    $effect(() => {
      const number = turn()
      untrack(() => session.receipts.need(number))
    })
  }

  again(): void {
    this.#attempt++
  }
}

async function look(session: LiveSession, turn: number): Promise<Seen> {
  const path = { session_id: session.id, turn }
  const [context, answer] = await Promise.all([call('read_turn_context', { path }), session.answerOf(turn)])
  await agents.loadItems(context.agent).catch(() => {})
  return { turn, context, answer }
}

function isAbsent(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 404
}
