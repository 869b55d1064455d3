package sample

const twins = 2

var several Several
