/** One agent while it is shown: what its folder says, its tool servers, and what happens to them on disk. */

import { call, ProblemError } from '../api/call.ts'
import type { AgentEvent, AgentView, Problem, PromptView, ServerDetail, ServerView } from '../api/schema.ts'
import { agents } from './items.svelte.ts'
import { watchAgent } from './watch.ts'

export class LiveAgent {
  readonly name: string
  /** Null until it has loaded. */
  view: AgentView | null = $state.raw(null)
  prompts: PromptView[] = $state.raw([])
  servers: ServerDetail[] = $state.raw([])
  problems: Problem[] = $state.raw([])
  indexing: { done: number; total: number } | null = $state.raw(null)
  failure: ProblemError | null = $state.raw(null)
  deleted = $state(false)
  /** What its items are searched for, while it is shown: one comes back to it from an item. */
  filter = $state('')

  #stamps: Record<string, number> = $state.raw({})
  #stop: (() => void) | null = null
  #opened = false
  #reading: Promise<void> | null = null
  /** What was told while it was read for the first time. */
  #early: AgentEvent[] | null = null
  #again = false
  #puts = 0

  constructor(name: string) {
    this.name = name
  }

  /** How often a file is known to have been written; a view of the file reads it again when this changes. */
  stamp(file: string): number {
    return this.#stamps[file] ?? 0
  }

  async open(): Promise<void> {
    this.#opened = true
    this.failure = null
    this.#early = []
    await this.#heard()
    await this.read()
    const early = this.#early
    this.#early = null
    if (this.failure) this.#stop?.()
    else for (const told of early) this.#hear(told)
  }

  /** Begin to listen; what is read after this misses nothing. */
  async #heard(): Promise<void> {
    this.#stop?.()
    await new Promise<void>((begun) => {
      this.#stop = watchAgent(this.name, {
        onBegin: (again) => (again ? void this.read() : begun()),
        onTold: (told) => this.#hear(told),
        onRefused: begun,
      })
    })
  }

  close(): void {
    this.#opened = false
    this.#stop?.()
  }

  /** Read everything again; once more afterwards when that was asked for meanwhile. */
  async read(): Promise<void> {
    if (this.#reading) {
      this.#again = true
      return await this.#reading
    }
    this.#reading = this.#readAll()
    try {
      await this.#reading
    } finally {
      this.#reading = null
    }
  }

  async #readAll(): Promise<void> {
    do {
      this.#again = false
      const puts = this.#puts
      try {
        const path = { agent: this.name }
        const [view, prompts] = await Promise.all([
          call('read_agent', { path }),
          call('list_agent_prompts', { path }),
          agents.loadItems(this.name),
        ])
        const servers = await Promise.all(view.servers.map(({ name }) => this.#server(name)))
        this.view = view
        this.problems = view.problems
        this.prompts = prompts.prompts
        // What was read before something was put in is not how it is now.
        if (puts === this.#puts) this.servers = servers.filter((server) => server !== null)
        else this.#again = true
        this.failure = null
      } catch (error) {
        if (!(error instanceof ProblemError)) throw error
        // What was read before is still worth showing.
        if (!this.view) this.failure = error
      }
    } while (this.#again && this.#opened)
  }

  /** A server may be gone by the time it is asked for; then the events say so as well. */
  async #server(server: string): Promise<ServerDetail | null> {
    try {
      return await call('read_agent_server', { path: { agent: this.name, server } })
    } catch (error) {
      if (error instanceof ProblemError && error.problem.status === 404) return null
      throw error
    }
  }

  #hear(told: AgentEvent): void {
    if (this.#early) return void this.#early.push(told)
    switch (told.type) {
      case 'agent.files':
        this.#stamps = {
          ...this.#stamps,
          ...Object.fromEntries(told.files.map((file) => [file, this.stamp(file) + 1])),
        }
        void this.read()
        return
      case 'agent.problems':
        this.problems = told.problems
        return
      case 'agent.server':
        if (!this.#knows(told.name, told.server)) void this.read()
        return
      case 'agent.indexing':
        this.indexing = told.done < told.total ? { done: told.done, total: told.total } : null
        return
      case 'agent.deleted':
        this.deleted = true
        this.close()
    }
  }

  #knows(name: string, now: ServerView | null): boolean {
    const known = this.servers.find((server) => server.name === name)
    if (!now || !known) return !now && !known
    return (
      known.state === now.state &&
      known.error === now.error &&
      known.tools.map((tool) => tool.name).join('\n') === now.tools.join('\n')
    )
  }

  /** Put a server's new state in without reading everything. */
  put(server: ServerDetail): void {
    this.#puts++
    this.servers = this.servers.map((one) => (one.name === server.name ? server : one))
  }
}

/** What a change of a revision names. */
export function ifMatch(revision: string): { 'If-Match': string } {
  return { 'If-Match': `"${revision}"` }
}

export const IF_NEW = { 'If-None-Match': '*' }
