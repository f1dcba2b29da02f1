/** What the screen is like: `narrow` is a phone, where there is one column and the rest are sheets. */

import { MediaQuery } from 'svelte/reactivity'

export const narrow = new MediaQuery('max-width: 52rem')
