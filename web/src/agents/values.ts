/** A rule or a reference as its form shows it, and what an edit of it sends. */

import type { ItemDetail, ItemEdit, NewItem } from '../api/schema.ts'

export type ItemValues = {
  description: string
  priority: number
  include: 'always' | 'manual' | 'agent'
  enabled: boolean
  title: string
  related: readonly string[]
  text: string
}

export type WrittenType = 'rule' | 'reference'

export const NEW: ItemValues = {
  description: '',
  priority: 500,
  include: 'manual',
  enabled: true,
  title: '',
  related: [],
  text: '',
}

export const NAMES: Record<keyof ItemValues, string> = {
  description: 'Description',
  priority: 'Priority',
  include: 'Include',
  enabled: 'Enabled',
  title: 'Title',
  related: 'Related references',
  text: 'Text',
}

export function valuesOf(item: ItemDetail): ItemValues {
  return {
    description: item.description,
    priority: item.priority ?? NEW.priority,
    include: item.include,
    enabled: item.enabled,
    title: item.title,
    related: item.related,
    text: item.text ?? '',
  }
}

/** What an edit sends: what changed, and nothing for a title that was emptied, so that the first heading counts. */
export function editOf(changed: Partial<ItemValues>): ItemEdit {
  const { related, title, ...rest } = changed
  return {
    ...rest,
    ...(related ? { related: [...related] } : {}),
    ...(title === undefined ? {} : { title: title || null }),
  }
}

export function newItemOf(type: WrittenType, name: string, values: ItemValues): NewItem {
  const { title, related, ...rest } = values
  if (type === 'rule') return { type, name, ...rest }
  return { type, name, ...rest, related: [...related], ...(title ? { title } : {}) }
}
