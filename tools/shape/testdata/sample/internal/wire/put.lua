return 'not embedded'
