/** Light, dark, or as the system has it. `public/theme.js` applies the choice before the page is drawn. */

import { kept } from './kept.ts'

export type Theme = 'auto' | 'light' | 'dark'

const choice = kept<Theme>('theme')

class ThemeChoice {
  #now: Theme = $state(choice.value ?? 'auto')

  get now(): Theme {
    return this.#now
  }

  set now(theme: Theme) {
    this.#now = theme
    choice.value = theme === 'auto' ? null : theme
    if (theme === 'auto') delete document.documentElement.dataset['theme']
    else document.documentElement.dataset['theme'] = theme
  }
}

export const theme = new ThemeChoice()
