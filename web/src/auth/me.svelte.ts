/** Who is looking: on this machine the user who opens the page, elsewhere the holder of a token. */

import { call, ProblemError, said, whenLocked } from '../api/call.ts'
import type { Me } from '../api/schema.ts'

class Access {
  me: Me | null = $state.raw(null)
  problem = $state('')

  get locked(): boolean {
    return this.me !== null && this.me.owner === null
  }

  async look(): Promise<void> {
    this.problem = ''
    try {
      this.me = await call('read_me', {})
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      this.problem = said(error)
    }
  }

  async logIn(token: string): Promise<void> {
    this.me = await call('log_in', { body: { token } })
  }

  async logOut(): Promise<void> {
    await call('log_out', {})
    await this.look()
  }
}

export const access = new Access()

// A token may be revoked or end while the page is open.
whenLocked(() => void access.look())
