/**
 * Editing something that others can change meanwhile, without losing either version.
 *
 * A draft is a few named values; `base` is what it began as, and its revision. When another revision arrives, a draft
 * that was not edited simply becomes it; one that was edited stays, and the other version stands beside it until
 * the user chooses. Drafts outlive the page.
 */

import { ProblemError, said } from '../api/call.ts'
import { kept } from './kept.ts'
import { toasts } from './toasts.svelte.ts'

export type Value = string | number | boolean | readonly string[] | null
export type Draft = Record<string, Value>
/** Something as it is where it is kept. */
export type Version<D extends Draft> = { values: D; revision: string }
/** A line that cannot be used, and why. */
export type Fault = { line: number | null; reason: string }

export interface Source<D extends Draft> {
  /** What the draft is remembered by. */
  key: string
  load(): Promise<Version<D>>
  /** Keep what changed, if the revision is still that one; `all` are the values with it. Null: it is to be made. */
  save(changed: Partial<D>, revision: string | null, all: D): Promise<Version<D>>
}

type Remembered<D extends Draft> = { values: D; base: Version<D> }

export class Editing<D extends Draft> {
  readonly source: Source<D>
  /** Null until it has loaded. */
  base: Version<D> | null = $state.raw(null)
  values: D | null = $state.raw(null)
  /** The other version: null when there is none, and with `version` null when it was deleted. */
  conflict: { version: Version<D> | null } | null = $state.raw(null)
  faults: Fault[] = $state.raw([])
  /** Why it could not be saved, apart from faults. */
  problem = $state('')
  /** Why it could not be loaded. */
  failure = $state('')
  gone = $state(false)
  saving = $state(false)
  /** It was saved here, and not touched since. */
  saved = $state(false)

  readonly changed: (keyof D & string)[] = $derived(
    this.base && this.values ? differing(this.base.values, this.values) : [],
  )
  readonly dirty = $derived(this.changed.length > 0)

  /** How often it was loaded or saved: what was asked for before the last time is not how it is now. */
  #asked = 0

  constructor(source: Source<D>) {
    this.source = source
  }

  async open(): Promise<void> {
    this.failure = ''
    const asked = ++this.#asked
    try {
      const version = await this.source.load()
      if (asked === this.#asked) this.arrive(version)
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      if (asked === this.#asked) this.#lost(error)
    }
  }

  /** Look whether it is another by now. */
  async look(): Promise<void> {
    if (!this.saving) await this.open()
  }

  arrive(version: Version<D>): void {
    this.gone = false
    if (!this.base) {
      const before = kept<Remembered<D>>(this.source.key).value
      this.base = before?.base ?? version
      this.values = before?.values ?? version.values
    }
    if (this.conflict) this.conflict = { version }
    if (version.revision === this.base.revision) {
      this.conflict = null
      return
    }
    if (!this.dirty || !differing(version.values, this.values!).length) this.#take(version)
    else this.conflict = { version }
  }

  set<K extends keyof D & string>(name: K, value: D[K]): void {
    if (!this.values || !this.base) return
    this.values = { ...this.values, [name]: value }
    this.faults = []
    this.problem = ''
    this.saved = false
    this.#remember()
  }

  async save(): Promise<boolean> {
    if (!this.base || !this.values || this.saving || this.conflict) return false
    return await this.#save(this.base.revision)
  }

  /** Keep my version although there is another; what I did not change stays as the other has it. */
  async keepMine(): Promise<boolean> {
    const other = this.conflict
    if (!other || !this.base || !this.values) return false
    const mine = this.values
    const names = this.changed
    if (other.version) {
      this.base = other.version
      this.values = { ...other.version.values, ...Object.fromEntries(names.map((name) => [name, mine[name]])) }
    }
    this.conflict = null
    this.#remember()
    return await this.#save(other.version ? other.version.revision : null)
  }

  /** Let my version go, with a way back. */
  takeTheirs(): void {
    const other = this.conflict?.version
    const mine = this.values
    if (!other || !mine) return
    this.#take(other)
    toasts.show('The other version is used.', { action: { text: 'Undo', run: () => this.#again(mine) } })
  }

  /** Go back to what it was before I changed it, with a way back. */
  revert(): void {
    const mine = this.values
    if (!this.base || !mine || !this.dirty) return
    this.#take(this.base)
    toasts.show('Your changes were discarded.', { action: { text: 'Undo', run: () => this.#again(mine) } })
  }

  forget(): void {
    kept(this.source.key).value = null
  }

  async #save(revision: string | null): Promise<boolean> {
    const all = this.values!
    const part = Object.fromEntries(this.changed.map((name) => [name, all[name]])) as Partial<D>
    this.saving = true
    this.#asked++
    this.faults = []
    this.problem = ''
    try {
      const saved = await this.source.save(part, revision, all)
      const later = differing(all, this.values!)
      const typed = this.values!
      this.#take(saved)
      this.saved = !later.length
      // What was typed while it was being saved is not saved yet.
      if (later.length)
        this.#again({ ...saved.values, ...Object.fromEntries(later.map((name) => [name, typed[name]])) })
      return true
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      if (error.code === 'stale_revision') await this.#compare()
      else if (error.code === 'invalid_file')
        this.faults = (error.problem.facts['problems'] as Fault[] | undefined) ?? []
      if (error.code !== 'stale_revision' && !this.faults.length) this.problem = said(error)
      return false
    } finally {
      this.saving = false
    }
  }

  async #compare(): Promise<void> {
    try {
      this.arrive(await this.source.load())
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      this.#lost(error)
    }
  }

  /** It cannot be read. When it is gone, a draft that was touched can still be kept. */
  #lost(error: ProblemError): void {
    const missing = error.problem.status === 404
    if (missing && this.base && this.dirty) this.conflict = { version: null }
    else if (!this.base || missing) {
      this.gone = missing
      this.failure = said(error)
    } else this.problem = said(error)
  }

  #take(version: Version<D>): void {
    this.base = version
    this.values = version.values
    this.conflict = null
    this.faults = []
    this.problem = ''
    this.gone = false
    this.failure = ''
    this.forget()
  }

  #again(values: D): void {
    this.values = values
    this.#remember()
  }

  #remember(): void {
    const { base, values } = this
    kept<Remembered<D>>(this.source.key).value = base && values && this.dirty ? { base, values } : null
  }
}

/** Return the names of values that are not the same in both. */
export function differing<D extends Draft>(one: D, other: D): (keyof D & string)[] {
  return (Object.keys(other) as (keyof D & string)[]).filter(
    (name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]),
  )
}
