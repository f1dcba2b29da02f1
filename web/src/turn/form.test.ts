import { expect, test } from 'vitest'
import { contentOf, fieldsOf } from './form.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    size: { type: 'string', enum: ['small', 'large'], title: 'Size' },
    sugar: { type: 'integer', default: 0 },
    note: { type: 'string', description: 'For the kitchen' },
    hot: { type: 'boolean', default: true },
    extras: { type: 'array', items: { anyOf: [{ const: 'milk', title: 'Milk' }] } },
    mail: { type: 'string', format: 'email' },
  },
  required: ['size'],
}

test('a form has a field for each property, by its type', () => {
  expect(
    fieldsOf(SCHEMA).map(({ name, kind, input, required, value }) => [name, kind, input, required, value]),
  ).toEqual([
    ['size', 'choice', 'text', true, ''],
    ['sugar', 'number', 'number', false, '0'],
    ['note', 'text', 'text', false, ''],
    ['hot', 'boolean', 'text', false, true],
    ['extras', 'choices', 'text', false, []],
    ['mail', 'text', 'email', false, ''],
  ])
  expect(fieldsOf(SCHEMA)[4]!.choices).toEqual([{ value: 'milk', label: 'Milk' }])
})

test('an answer has what was filled in, by the types of the schema', () => {
  const fields = fieldsOf(SCHEMA).map((field) => (field.name === 'size' ? { ...field, value: 'large' } : field))
  expect(contentOf(fields)).toEqual({ size: 'large', sugar: 0, hot: true })
})
