import { expect, test } from 'vitest'
import { namesIn, partOfFile, promptTitle, withoutFront } from './parts.ts'

test('files lead to the place where they are edited', () => {
  expect(partOfFile('rules/team/to ne.md')).toEqual({ kind: 'file', name: 'rules/team/to ne.md' })
  expect(partOfFile('mcp.json')).toEqual({ kind: 'file', name: 'mcp.json' })
  expect(partOfFile('prompts/sites/example.org.md')).toEqual({ kind: 'prompt', name: 'sites/example.org' })
  expect(partOfFile('prompts/core.md')).toEqual({ kind: 'prompt', name: 'core' })
  expect(partOfFile('agent.yaml')).toEqual({ kind: 'settings' })
  expect(partOfFile('rules/tone.txt')).toBeNull()
  expect(partOfFile('prompts/notes.md')).toBeNull()
})

test('the text of a file begins after its front matter', () => {
  expect(withoutFront('---\ninclude: always\n---\nBe kind.\n---\nAlways.\n')).toBe('Be kind.\n---\nAlways.\n')
  expect(withoutFront('No front matter\n---\n')).toBe('No front matter\n---\n')
})

test('names and titles', () => {
  expect(namesIn(' a, b\nc,,')).toEqual(['a', 'b', 'c'])
  expect(['core', 'default_site', 'sites/example.org'].map(promptTitle)).toEqual([
    'Core prompt',
    'Default for sites',
    'example.org',
  ])
})
