/** Formulas in type, as MathML; loaded when the first formula is shown. */

import temml from 'temml'
import 'temml/dist/Temml-Local.css'
import { withoutSigns } from './formulas.ts'

const OPTIONS = {
  throwOnError: true,
  trust: false,
  annotate: true,
  maxSize: [20, 40] as [number, number],
  maxExpand: 300,
}

/** Set the formulas in an element. One that cannot be read stays as it is written. */
export function typeset(element: Element): void {
  for (const one of element.querySelectorAll<HTMLElement>('.formula, .formula-block')) {
    const written = one.textContent
    const set = document.createElement('span')
    try {
      temml.render(withoutSigns(written), set, { ...OPTIONS, displayMode: one.className === 'formula-block' })
      one.replaceChildren(...set.childNodes)
    } catch {
      one.textContent = written
    }
  }
}
