/** What the message that is being written would make: asked for when writing pauses, and only the latest answer counts. */

import { call, said } from '../api/call.ts'
import type { RequestContext } from '../api/schema.ts'

const PAUSE_MS = 350
/** What failed is asked again, so that the panel does not speak of a server that is back. */
const AGAIN_MS = 4000
/** A message that asks for nothing: with it the server tells what any request of the session takes. */
const NOTHING = '…'

export class Preview {
  readonly session: string
  /** The record of the request as last told; null before the first answer. */
  context: RequestContext | null = $state.raw(null)
  /** The message that `context` is about; empty when none was written. */
  message = $state('')
  asking = $state(false)
  problem: string | null = $state(null)

  #timer = 0
  #asked: AbortController | null = null

  constructor(session: string) {
    this.session = session
  }

  /** Ask soon, unless something else is written meanwhile. */
  ask(message: string): void {
    this.close()
    this.asking = true
    this.#timer = window.setTimeout(() => void this.#look(message), this.context ? PAUSE_MS : 0)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#asked?.abort()
    this.#asked = null
    this.asking = false
  }

  async #look(message: string): Promise<void> {
    const asked = (this.#asked = new AbortController())
    const content = message.trim() ? message : NOTHING
    try {
      const { context } = await call(
        'preview',
        { path: { session_id: this.session }, query: { texts: false }, body: { content } },
        { signal: asked.signal },
      )
      if (asked.signal.aborted) return
      this.context = context
      this.message = message.trim() ? message : ''
      this.problem = null
    } catch (error) {
      if (asked.signal.aborted) return
      this.problem = said(error)
      this.#timer = window.setTimeout(() => void this.#look(message), AGAIN_MS)
    }
    this.asking = false
  }
}
