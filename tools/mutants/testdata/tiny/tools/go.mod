module example.com/tiny/tools

go 1.26

replace example.com/tiny => ../

require example.com/tiny v0.0.0
