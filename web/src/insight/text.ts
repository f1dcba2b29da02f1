/** A request context as plain text, to be put into a report. */

import type { RequestContext } from '../api/schema.ts'
import { grouped, standing, summaryLine } from '../context/items.ts'
import { badgeText } from '../ui/mode.ts'

/** Return it in groups: `• Name [Always]`, `• server:tool [Agent - 0.85]`. */
export function contextText(context: Pick<RequestContext, 'items' | 'carried'>): string {
  const groups = grouped(context.items).map(({ title, items }) => {
    const lines = items.map((item) => {
      const failed = item.status === 'used' ? '' : ` (${item.status.replaceAll('_', ' ')})`
      return `• ${item.server ? `${item.server}:` : ''}${item.name} [${badgeText(item.include_mode, item.evidence?.score ?? null)}]${failed}`
    })
    return [`${title} (${items.length}):`, ...lines].join('\n')
  })
  const earlier = standing(context).map(
    (item) => `• ${item.server ? `${item.server}:` : ''}${item.name} [since turn ${item.turn}]`,
  )
  if (earlier.length) groups.push([`From earlier turns (${earlier.length}):`, ...earlier].join('\n'))
  return [`Context Used: ${summaryLine(context.items)}`, ...groups].join('\n\n')
}
