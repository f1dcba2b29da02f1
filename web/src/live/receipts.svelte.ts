/** The turns of a session in brief: asked for many at a time, and again while one of them goes on. */

import { SvelteMap } from 'svelte/reactivity'
import { call } from '../api/call.ts'
import type { TurnReceipt } from '../api/schema.ts'

const PAGE = 50

export class Receipts {
  readonly #session: string
  /** Null: nothing is on record. */
  readonly #found = new SvelteMap<number, TurnReceipt | null>()
  #wanted: number[] = []
  #soon = false

  constructor(session: string) {
    this.#session = session
  }

  get(turn: number): TurnReceipt | null {
    return this.#found.get(turn) ?? null
  }

  /** Read a turn unless it is known. */
  need(turn: number): void {
    if (turn > 0 && !this.#found.has(turn)) this.refresh(turn)
  }

  /** Read a turn again. */
  refresh(turn: number): void {
    if (this.#wanted.includes(turn)) return
    this.#wanted.push(turn)
    if (!this.#soon) setTimeout(() => void this.#read())
    this.#soon = true
  }

  /** Read every turn, and return them in their order. */
  async all(): Promise<TurnReceipt[]> {
    let first: number | null = 1
    const turns: TurnReceipt[] = []
    while (first !== null) {
      const page = await this.#page(first, 200)
      turns.push(...page.turns)
      first = page.next
    }
    return turns
  }

  clear(): void {
    this.#found.clear()
  }

  async #read(): Promise<void> {
    const wanted = this.#wanted.sort((one, other) => one - other)
    this.#wanted = []
    this.#soon = false
    while (wanted.length) {
      const first = wanted[0]!
      const last = wanted.findLast((turn) => turn < first + PAGE)!
      const asked = wanted.splice(0, wanted.lastIndexOf(last) + 1)
      try {
        const { turns } = await this.#page(first, last - first + 1)
        const read = turns.map(({ turn }) => turn)
        for (const turn of asked) if (!read.includes(turn)) this.#found.set(turn, null)
      } catch {
        // The line below the answer is left out; the context itself says what is wrong when it is opened.
      }
    }
  }

  async #page(first: number, limit: number) {
    const page = await call('list_turns', { path: { session_id: this.#session }, query: { first, limit } })
    for (const receipt of page.turns) this.#found.set(receipt.turn, receipt)
    return page
  }
}
