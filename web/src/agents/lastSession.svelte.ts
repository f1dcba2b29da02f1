/** The session that was used last, as it is now; null while it is not known. */

import { call, ProblemError } from '../api/call.ts'
import type { ItemRefInput, SessionView } from '../api/schema.ts'
import { navigation } from '../routing/navigation.svelte.ts'

class LastSession {
  session: SessionView | null = $state.raw(null)
  #reading = false

  /** Read it again; many may ask for that at once. */
  async look(): Promise<void> {
    const id = navigation.lastSession
    if (!id || this.#reading) return
    this.#reading = true
    try {
      this.session = await call('read_session', { path: { session_id: id } })
    } catch (error) {
      // It may have been deleted since.
      if (!(error instanceof ProblemError)) throw error
      this.session = null
    } finally {
      this.#reading = false
    }
  }

  async add(item: ItemRefInput): Promise<void> {
    if (!this.session) return
    await call('add_session_item', { path: { session_id: this.session.id }, body: item })
    await this.look()
  }
}

export const lastSession = new LastSession()
