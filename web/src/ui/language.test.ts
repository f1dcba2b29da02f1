import { expect, test } from 'vitest'
import { highlighted } from './highlight.ts'
import { languageOf } from './language.ts'

test('a file has the language of its ending', () => {
  expect(['/srv/a.py', 'b.YML', 'c.tar.gz', 'Makefile', '.md', 'd.constructor'].map(languageOf)).toEqual([
    'python',
    'yaml',
    '',
    '',
    'markdown',
    '',
  ])
})

test('what is coloured is escaped', () => {
  expect(highlighted('a = "<b>"', 'python')).toBe('a = <span class="hljs-string">&quot;&lt;b&gt;&quot;</span>')
})
