/**
 * Files of agents that are about to be deleted.
 *
 * A file that cannot be used could not be written again. So it is deleted a little later, and undoing that is leaving it
 * where it is.
 */

import { call } from '../api/call.ts'
import { toasts, UNDO_MS } from '../ui/toasts.svelte.ts'
import { ifMatch, type LiveAgent } from './agent.svelte.ts'

interface Deletion {
  live: LiveAgent
  file: string
  revision: string
  timer: ReturnType<typeof setTimeout>
}

class Leaving {
  #files: Record<string, Deletion> = $state.raw({})

  constructor() {
    addEventListener('pagehide', () => Object.keys(this.#files).forEach((key) => void this.#delete(key)))
  }

  has(agent: string, file: string): boolean {
    return keyOf(agent, file) in this.#files
  }

  /** Delete a file a little later if it is still of that revision, so that it can be undone until then. */
  remove(live: LiveAgent, file: string, revision: string): void {
    const key = keyOf(live.name, file)
    clearTimeout(this.#files[key]?.timer)
    const timer = setTimeout(() => void this.#delete(key), UNDO_MS)
    this.#files = { ...this.#files, [key]: { live, file, revision, timer } }
    toasts.show(`${file} was deleted.`, { action: { text: 'Undo', run: () => this.#keep(key) } })
  }

  #keep(key: string): void {
    const { [key]: kept, ...others } = this.#files
    clearTimeout(kept?.timer)
    this.#files = others
  }

  async #delete(key: string): Promise<void> {
    const { live, file, revision, timer } = this.#files[key]!
    clearTimeout(timer)
    await call(
      'delete_agent_file',
      { path: { agent: live.name, file } },
      { headers: ifMatch(revision), keepalive: true },
    ).catch(toasts.failed)
    await live.read()
    this.#keep(key)
  }
}

function keyOf(agent: string, file: string): string {
  return `${agent}/${file}`
}

export const leaving = new Leaving()
