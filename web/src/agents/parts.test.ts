import { expect, test } from 'vitest'
import { namesIn, placeOfFile, promptTitle, withoutFront } from './parts.ts'

test('files lead to the place where they are edited', () => {
  expect(placeOfFile('rules/tone.md')).toEqual({ item: { type: 'rule', name: 'tone' } })
  expect(placeOfFile('references/a_b.md')).toEqual({ item: { type: 'reference', name: 'a_b' } })
  expect(placeOfFile('prompts/sites/example.org.md')).toEqual({ part: { kind: 'prompt', name: 'sites/example.org' } })
  expect(placeOfFile('prompts/core.md')).toEqual({ part: { kind: 'prompt', name: 'core' } })
  expect(placeOfFile('agent.yaml')).toEqual({ part: { kind: 'settings' } })
  expect(placeOfFile('rules/../core.md')).toBeNull()
})

test('the text of a file begins after its front matter', () => {
  expect(withoutFront('---\ninclude: always\n---\nBe kind.\n---\nAlways.\n')).toBe('Be kind.\n---\nAlways.\n')
  expect(withoutFront('No front matter\n---\n')).toBe('No front matter\n---\n')
})

test('names and titles', () => {
  expect(namesIn(' a, b\nc,,')).toEqual(['a', 'b', 'c'])
  expect(['core', 'default_site', 'sites/example.org'].map(promptTitle)).toEqual(['Core prompt', 'Default for sites', 'example.org'])
})
