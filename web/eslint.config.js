/** The linter: correctness with types, Svelte's own rules, and which folder may import which. */

import { readdirSync } from 'node:fs'
import js from '@eslint/js'
import imports from 'eslint-plugin-import-x'
import svelte from 'eslint-plugin-svelte'
import { defineConfig } from 'eslint/config'
import globals from 'globals'
import ts from 'typescript-eslint'

/** The folders of `src/`, lowest first: a folder imports only from lines above its own. The files beside them are the page. */
const LAYERS = [
  ['api'],
  ['ui'],
  ['routing'],
  ['auth'],
  ['context'],
  ['live'],
  ['agents'],
  ['sessions'],
  ['applets', 'insight', 'panel', 'turn'],
]

const folders = readdirSync(`${import.meta.dirname}/src`, { withFileTypes: true }).filter((one) => one.isDirectory())
const unplaced = folders.filter(({ name }) => !LAYERS.flat().includes(name))
if (unplaced.length) throw new Error(`not in LAYERS: ${unplaced.map(({ name }) => name).join(', ')}`)

/** What each folder must not import: the others of its line, every line below, and the page. */
const zones = LAYERS.flatMap((line, index) =>
  line.map((folder) => ({
    target: `./src/${folder}`,
    from: [
      ...LAYERS.slice(index)
        .flat()
        .filter((other) => other !== folder)
        .map((other) => `./src/${other}/**/*`),
      './src/*',
    ],
    message: 'See LAYERS in eslint.config.js.',
  })),
)

export default defineConfig(
  { ignores: ['node_modules/', 'src/api/schema.ts'] },
  js.configs.recommended,
  ts.configs.recommendedTypeChecked,
  svelte.configs.recommended,
  {
    languageOptions: {
      globals: globals.browser,
      parserOptions: { projectService: true, extraFileExtensions: ['.svelte'], tsconfigRootDir: import.meta.dirname },
    },
    plugins: { 'import-x': imports },
    rules: {
      'import-x/no-restricted-paths': ['error', { basePath: import.meta.dirname, zones }],
      // `{' '}` is a space that stays.
      'svelte/no-useless-mustaches': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  { files: ['**/*.svelte', '**/*.svelte.ts'], languageOptions: { parserOptions: { parser: ts.parser } } },
  {
    // What comes from another component has no type here; svelte-check sees it.
    files: ['**/*.svelte', 'src/*.ts'],
    rules: {
      '@typescript-eslint/no-duplicate-type-constituents': 'off',
      '@typescript-eslint/no-redundant-type-constituents': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  { files: ['**/*.js'], extends: [ts.configs.disableTypeChecked], languageOptions: { globals: globals.node } },
  { files: ['public/*.js'], languageOptions: { globals: globals.browser } },
)
