// @vitest-environment jsdom
import { beforeEach, expect, test } from 'vitest'
import { ProblemError } from '../api/call.ts'
import { Editing, type Source, type Version } from './editing.svelte.ts'

type Note = { title: string; text: string }

function problem(status: number, code: string, facts: Record<string, unknown> = {}): ProblemError {
  return new ProblemError({ type: '', title: '', status, detail: code, code, facts, errors: [] })
}

/** A place where notes are kept, which others can write to. */
class Kept implements Source<Note> {
  key = 'a note'
  now: Version<Note> | null = { values: { title: 'A', text: 'one' }, revision: '1' }
  wrong = false

  others(values: Partial<Note>) {
    this.now = { values: { ...this.now!.values, ...values }, revision: `${this.now!.revision}'` }
  }
  load = () => (this.now ? Promise.resolve(this.now) : Promise.reject(problem(404, 'missing_file')))
  // eslint-disable-next-line @typescript-eslint/require-await -- what it throws is a rejection
  async save(changed: Partial<Note>, revision: string | null, all: Note) {
    if (this.wrong) throw problem(422, 'invalid_file', { problems: [{ file: 'a.md', line: 3, reason: 'no' }] })
    if (this.now && revision !== this.now.revision) throw problem(412, 'stale_revision')
    return (this.now = { values: this.now ? { ...this.now.values, ...changed } : all, revision: `${revision}+` })
  }
}

beforeEach(() => localStorage.clear())

async function edited(kept = new Kept()): Promise<[Editing<Note>, Kept]> {
  const editing = new Editing(kept)
  await editing.open()
  return [editing, kept]
}

test('a draft that was not edited becomes what it is elsewhere', async () => {
  const [editing, kept] = await edited()
  kept.others({ text: 'two' })
  await editing.look()
  expect([editing.values, editing.dirty, editing.conflict]).toEqual([{ title: 'A', text: 'two' }, false, null])
})

test('of two answers the one that was asked for last counts, in whatever order they come', async () => {
  const [editing, kept] = await edited()
  let answer = (version: Version<Note>): void => void version
  const slow = new Promise<Version<Note>>((resolve) => (answer = resolve))
  const before = kept.now!
  kept.load = () => slow
  const first = editing.look()
  kept.others({ text: 'two' })
  kept.load = () => Promise.resolve(kept.now!)
  await editing.look()
  answer({ ...before, values: { title: 'A', text: 'between' }, revision: 'between' })
  await first
  expect([editing.values, editing.base?.revision]).toEqual([{ title: 'A', text: 'two' }, "1'"])
})

test('only what changed is saved', async () => {
  const [editing, kept] = await edited()
  editing.set('text', 'mine')
  expect(editing.changed).toEqual(['text'])
  expect(await editing.save()).toBe(true)
  expect(kept.now?.values).toEqual({ title: 'A', text: 'mine' })
  expect(editing.dirty).toBe(false)
})

test('two versions stand beside each other until one is chosen, and neither is lost', async () => {
  const [editing, kept] = await edited()
  editing.set('text', 'mine')
  kept.others({ title: 'B', text: 'theirs' })
  expect(await editing.save()).toBe(false)
  expect(editing.conflict?.version?.values).toEqual({ title: 'B', text: 'theirs' })
  expect([editing.values, kept.now?.values.text]).toEqual([{ title: 'A', text: 'mine' }, 'theirs'])
  expect(await editing.keepMine()).toBe(true)
  expect([kept.now?.values, editing.conflict]).toEqual([{ title: 'B', text: 'mine' }, null])
})

test('the other version can be taken', async () => {
  const [editing, kept] = await edited()
  editing.set('text', 'mine')
  kept.others({ text: 'theirs' })
  await editing.look()
  editing.takeTheirs()
  expect([editing.values, editing.dirty, editing.conflict]).toEqual([{ title: 'A', text: 'theirs' }, false, null])
})

test('what was deleted elsewhere can be written again', async () => {
  const [editing, kept] = await edited()
  editing.set('text', 'mine')
  kept.now = null
  await editing.look()
  expect(editing.conflict).toEqual({ version: null })
  await editing.keepMine()
  expect((kept.now as Version<Note> | null)?.values).toEqual({ title: 'A', text: 'mine' })
})

test('a draft is there again after the page was closed, and says so when something else came meanwhile', async () => {
  const [first, kept] = await edited()
  first.set('text', 'mine')
  const [again] = await edited(kept)
  expect([again.values?.text, again.dirty, again.conflict]).toEqual(['mine', true, null])
  kept.others({ text: 'theirs' })
  const [later] = await edited(kept)
  expect([later.values?.text, later.conflict?.version?.values.text]).toEqual(['mine', 'theirs'])
})

test('what was read before a save does not come back after it', async () => {
  const [editing, kept] = await edited()
  const before = kept.now!
  let answer = (_: Version<Note>) => {}
  const load = kept.load
  kept.load = () => new Promise((resolve) => (answer = resolve))
  const looking = editing.look()
  kept.load = load
  editing.set('text', 'mine')
  await editing.save()
  answer(before)
  await looking
  expect(editing.values?.text).toBe('mine')
})

test('faults come with their lines, and the draft stays', async () => {
  const [editing, kept] = await edited()
  kept.wrong = true
  editing.set('text', 'bad')
  expect(await editing.save()).toBe(false)
  expect(editing.faults).toEqual([{ file: 'a.md', line: 3, reason: 'no' }])
  expect(editing.values?.text).toBe('bad')
})
