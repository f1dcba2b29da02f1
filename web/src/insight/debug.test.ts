import { expect, test } from 'vitest'
import { afterAnswer, warningsOf } from './debug.ts'

const source = (title: string) => ({ title, score: 0.9, ref: null, url: '' })
const debug = { recent_sources_used: ['Upload', 'Albums'], available_related_documents: ['Formats'], warnings: [] }

test('what the answer used stands before what was used earlier, each once and only so many', () => {
  const many = { sources: ['Resizing', 'Upload', 'C', 'D', 'E'].map(source), related: ['Formats', 'Colours'] }

  expect(afterAnswer(debug, many)).toEqual({
    sources: ['Resizing', 'Upload', 'C', 'D', 'E'],
    related: ['Formats', 'Colours'],
  })
  expect(afterAnswer(debug, null)).toEqual({ sources: ['Upload', 'Albums'], related: ['Formats'] })
})

test('a follow-up that nothing related could help is a warning', () => {
  const alone = { ...debug, available_related_documents: [], warnings: ['No conversation history!'] }

  expect(warningsOf(debug, true)).toEqual([])
  expect(warningsOf(alone, false)).toEqual(['No conversation history!'])
  expect(warningsOf(alone, true)).toEqual(['No conversation history!', 'Related doc not available for follow-up'])
})
