/** The fields of a form that a tool asks for, read from its JSON Schema: flat, and of simple types. */

type Property = Record<string, unknown>

export type Field = {
  name: string
  label: string
  hint: string
  kind: 'text' | 'number' | 'boolean' | 'choice' | 'choices'
  input: 'text' | 'email' | 'url' | 'date' | 'datetime-local' | 'number'
  required: boolean
  choices: { value: string; label: string }[]
  value: string | boolean | string[]
}

const INPUTS: Record<string, Field['input']> = { email: 'email', uri: 'url', date: 'date' }

export function fieldsOf(schema: Record<string, unknown>): Field[] {
  const properties = (schema.properties ?? {}) as Record<string, Property>
  const required = (schema.required ?? []) as string[]
  return Object.entries(properties).map(([name, property]) => fieldOf(name, property, required.includes(name)))
}

/** The answer: what was filled in, by the types of the schema. What is empty and may be is left out. */
export function contentOf(fields: Field[]): Record<string, unknown> {
  const filled = fields.filter(({ kind, required, value }) =>
    kind === 'boolean' ? true : required || (Array.isArray(value) ? value.length > 0 : value !== ''),
  )
  return Object.fromEntries(
    filled.map(({ name, kind, value }) => [name, kind === 'number' && value !== '' ? Number(value) : value]),
  )
}

function fieldOf(name: string, property: Property, required: boolean): Field {
  const many = property.type === 'array'
  const choices = choicesOf(many ? ((property.items ?? {}) as Property) : property)
  const number = property.type === 'number' || property.type === 'integer'
  const kind = many
    ? 'choices'
    : choices.length
      ? 'choice'
      : property.type === 'boolean'
        ? 'boolean'
        : number
          ? 'number'
          : 'text'
  return {
    name,
    label: textOf(property.title) || name,
    hint: textOf(property.description),
    kind,
    input: number ? 'number' : (INPUTS[textOf(property.format)] ?? 'text'),
    required,
    choices,
    value: beginning(kind, property.default),
  }
}

function choicesOf(property: Property): Field['choices'] {
  const names = property.enumNames as string[] | undefined
  const plain = ((property.enum ?? []) as unknown[]).map((value, index) => ({
    value: String(value),
    label: names?.[index] ?? String(value),
  }))
  const titled = ((property.oneOf ?? property.anyOf ?? []) as Property[])
    .filter((each) => 'const' in each)
    .map((each) => ({ value: String(each.const), label: String(each.title ?? each.const) }))
  return [...plain, ...titled]
}

function beginning(kind: Field['kind'], given: unknown): Field['value'] {
  if (kind === 'boolean') return given === true
  if (kind === 'choices') return Array.isArray(given) ? given.map(String) : []
  return textOf(given)
}

/** A simple value as text; empty for anything else. */
function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? `${value}` : ''
}
