import { expect, test } from 'vitest'
import { said } from './call.ts'

test('what went wrong begins with a capital letter, and a name stays as it is', () => {
  const texts = ['no session has this id', 'openai:gpt-4o refused the key', 'a.json is too large', 'élan, gone', '']
  expect(texts.map((text) => said(new Error(text)))).toEqual([
    'No session has this id',
    'openai:gpt-4o refused the key',
    'a.json is too large',
    'Élan, gone',
    '',
  ])
})
