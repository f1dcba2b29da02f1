/** What a tool takes, as a flat list of its schema's properties. */

export type Property = { path: string; type: string; required: boolean; description: string }

type Schema = Record<string, unknown>

export function propertiesOf(definition: Schema): Property[] {
  const schema = asSchema(definition['parameters']) ?? asSchema(definition['input_schema']) ?? {}
  return inside(schema, '')
}

function inside(schema: Schema, before: string): Property[] {
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  return Object.entries(asSchema(schema['properties']) ?? {}).flatMap(([name, value]) => {
    const property = asSchema(value) ?? {}
    const path = `${before}${name}`
    const items = asSchema(property['items'])
    const description = typeof property['description'] === 'string' ? property['description'] : ''
    return [
      { path, type: typeOf(property), required: required.includes(name), description },
      ...inside(property, `${path}.`),
      ...(items ? inside(items, `${path}[].`) : []),
    ]
  })
}

function typeOf(schema: Schema): string {
  const {
    type,
    enum: choices,
    items,
    anyOf,
  } = schema as {
    type?: unknown
    enum?: unknown[]
    items?: unknown
    anyOf?: unknown[]
  }
  if (Array.isArray(choices)) return choices.map((one) => JSON.stringify(one)).join(' | ')
  if (Array.isArray(anyOf)) return anyOf.map((one) => typeOf(asSchema(one) ?? {})).join(' | ')
  if (type === 'array') return `list of ${typeOf(asSchema(items) ?? {})}`
  return Array.isArray(type) ? type.join(' | ') : typeof type === 'string' ? type : 'any'
}

function asSchema(value: unknown): Schema | null {
  return value && typeof value === 'object' && !Array.isArray(value) ? (value as Schema) : null
}
